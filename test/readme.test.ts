// The README's tables are the code's: a change of one without the other fails here. `npx vitest -u` writes them.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { configurationTable } from '../src/config.ts';
import { sandboxNumbers } from '../src/embedded/sandbox/sandbox-numbers.ts';

const path = fileURLToPath(new URL('../README.md', import.meta.url));

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return [headings, headings.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

const sections = {
  configuration: table(
    ['variable', 'default', ''],
    configurationTable().map(({ name, fallback, meaning }) => [
      `\`${name}\``,
      fallback === '' ? '' : `\`${fallback}\``,
      meaning,
    ]),
  ),
  sandbox: table(
    ['number', 'or', 'what happens'],
    sandboxNumbers.map(({ number, name, description }) => [
      `\`tel:${number}\``,
      `\`${name}\``,
      description,
    ]),
  ),
};

test.each(Object.entries(sections))(
  'the table of the %s in the README is the code’s',
  (name, text) => {
    const readme = readFileSync(path, 'utf8');
    const section = new RegExp(`(<!-- ${name} -->\\n)([\\s\\S]*?)(<!-- /${name} -->)`);
    const wanted = readme.replace(
      section,
      (_all, start: string, _old: string, end: string) => `${start}\n${text}\n\n${end}`,
    );
    if (expect.getState().snapshotState['_updateSnapshot'] === 'all') writeFileSync(path, wanted);
    else expect(readme).toBe(wanted);
  },
);
