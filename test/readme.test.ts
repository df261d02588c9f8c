// Checks that the tables in the pages match the code, and that links lead to existing files and
// headings. `npx vitest run test/readme.test.ts -u` updates the tables.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { callEvents } from '../src/calls/contract/call-event.ts';
import { callOutcomes } from '../src/calls/contract/call-words.ts';
import {
  configuration,
  events,
  lease,
  outcomes,
  problems,
  sandbox,
} from './support/page-tables.ts';
import { hasSql } from './support/sql-texts.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (page: string): string => readFileSync(join(root, page), 'utf8');

const sourcesIn = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`);

const pages = [
  'README.md',
  '.github/CONTRIBUTING.md',
  ...['src', 'sip-config'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
];

describe('the tables of the pages match the code', () => {
  test.each([
    ['configuration', 'sip-config/README.md', configuration],
    ['lease', 'sip-config/README.md', lease],
    ['sandbox', 'README.md', sandbox],
    ['outcomes', 'src/notifier/README.md', outcomes],
    ['problems', 'src/api/README.md', problems],
    ['events', 'src/events/README.md', events],
  ])('%s in %s', (name, page, text) => {
    const written = read(page);
    const section = new RegExp(`(<!-- ${name} -->\\n)([\\s\\S]*?)(<!-- /${name} -->)`);
    const wanted = written.replace(
      section,
      (_all, start: string, _old: string, end: string) => `${start}\n${text}\n\n${end}`,
    );

    expect(written).toMatch(section);
    if (expect.getState().snapshotState['_updateSnapshot'] === 'all') {
      writeFileSync(join(root, page), wanted);
    } else expect(written).toBe(wanted);
  });

  test('the table of outcomes lists every outcome', () => {
    const [, , ...rows] = outcomes.split('\n');
    const listed = rows.map((row) => /`([a-z-]+)` \|[^|]*\|$/.exec(row)?.[1]);

    expect(new Set(listed)).toEqual(new Set(callOutcomes));
  });

  test.each(Object.entries(callEvents))(
    'the description of %s says when it occurs',
    (_type, { data }) => {
      expect(data.description).toMatch(/\w/);
    },
  );
});

/** Returns the anchors that GitHub derives from a page's headings. */
function anchorsOf(page: string): readonly string[] {
  const text = read(page).replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe.each(pages)('%s', (page) => {
  const text = read(page);

  test('links to files and headings that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
    for (const [link, path = '', anchor] of links) {
      const target = path === '' ? page : join(dirname(page), path);
      expect(existsSync(join(root, target)), link).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(target), link).toContain(anchor);
    }
  });

  test('names files that exist', () => {
    const named = [...text.matchAll(/`((?:src|test|sip-config|\.docker|\.github)\/[\w./-]+)`/g)];
    // Operators write these two files, so the repository does not contain them.
    const writtenByOperators = ['sip-config/trunks.yaml', 'sip-config/stt-providers.yaml'];
    for (const [, path = ''] of named) {
      if (!writtenByOperators.includes(path)) expect(existsSync(join(root, path)), path).toBe(true);
    }
  });
});

describe('the commands of offhook', () => {
  const declarations = ['src/cli.ts', ...sourcesIn('src/cli')].map(read).join('\n');
  const commands = [...declarations.matchAll(/\bprogram\s*\.command\('([\w-]+)/g)].map(
    ([, name = '']) => name,
  );

  test('have a row in the table of commands', () => {
    const [, section = ''] = read('sip-config/README.md').split('\n## Commands\n');
    const [table = ''] = section.split('\n## ');
    const listed = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) =>
      names.split(', ').map((name) => name.replaceAll('`', '')),
    );

    expect(listed.sort()).toEqual(commands.sort());
  });

  test.each(pages)('that %s names exist', (page) => {
    for (const [, name = ''] of read(page).matchAll(/npx\s+offhook\s+([a-z][\w-]*)/g)) {
      expect(commands).toContain(name);
    }
  });
});

test.each([
  ['README.md', 280],
  ['.github/CONTRIBUTING.md', 60],
  ['src/README.md', 150],
])('%s has at most %i lines', (page, maxLines) => {
  expect(read(page).trimEnd().split('\n').length).toBeLessThanOrEqual(maxLines);
});

describe('the SQL tables in src/store/README.md', () => {
  const sources = sourcesIn('src').map((path) => [path, read(path)] as const);
  const isSchema = (path: string): boolean => /^src\/store\/schema[./]/.test(path);
  const created = sources
    .filter(([path]) => isSchema(path))
    .flatMap(([, text]) =>
      [...text.matchAll(/create table (?:if not exists )?(\w+)/g)].map(([, name = '']) => name),
    );
  const rows = new Map(
    [
      ...read('src/store/README.md').matchAll(/^\| ((?:`\w+`(?:, )?)+) \| .* \| (.*) \|$/gm),
    ].flatMap(([, names = '', writers = '']) =>
      [...names.matchAll(/\w+/g)].map(([name]) => [name, writers] as const),
    ),
  );

  test('are exactly the tables that the schema creates', () => {
    expect([...rows.keys()].sort()).toEqual([...new Set(created)].sort());
  });

  test.each([...rows])('only the files in the row of %s change it', (name, named) => {
    const change = new RegExp(`(?:insert into|update|delete from) ${name}\\b`);
    const writers = sources
      .filter((source) => !source[0].startsWith('src/store/schema/') && hasSql(source[1], change))
      .map(([path]) => path);

    for (const writer of writers) expect(named).toContain(writer);
  });
});
