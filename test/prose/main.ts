// Lints the English in comments and pages: `tsx test/prose/main.ts [path …]`, or without a path for
// all files. Prints one line per problem, and exits with 1 if it finds any.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ProseProblem, problemsOfPage, problemsOfScript, problemsOfSource } from './prose.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The lint's own rules and tests quote the phrases, and we don't edit texts by other people. */
const excluded = /^test\/(?:prose|fixtures)\/|ATTRIBUTION\.md$/;

const lints: readonly [pattern: RegExp, lint: (text: string) => readonly ProseProblem[]][] = [
  [/\.(?:ts|js|mjs)$/, problemsOfSource],
  [/\.md$/, problemsOfPage],
  [/\.(?:ya?ml|sh|conf|cfg)$|\/Dockerfile$|^\.ci\/run$/, problemsOfScript],
];

const paths = process.argv.slice(2);
const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...paths], {
  cwd: root,
  encoding: 'utf8',
});

let count = 0;
for (const path of tracked.trim().split('\n')) {
  const lint = lints.find(([pattern]) => pattern.test(path))?.[1];
  if (lint === undefined || excluded.test(path) || !existsSync(join(root, path))) continue;
  for (const { line, message } of lint(readFileSync(join(root, path), 'utf8'))) {
    console.log(`${path}:${line}: ${message}`);
    count += 1;
  }
}
if (count > 0) {
  console.log(`${count} ${count === 1 ? 'problem' : 'problems'} in comments and pages`);
  process.exitCode = 1;
}
