// What the lint rejects in comments and pages, and what it leaves alone.

import { describe, expect, test } from 'vitest';
import { maxColumns, problemsOfPage, problemsOfScript, problemsOfSource } from './prose.ts';

const messages = (problems: readonly { readonly message: string }[]) =>
  problems.map(({ message }) => message);

describe('a comment', () => {
  test.each([
    '/** Of the second leg. */',
    '// The timer. Of the second leg.',
    '/** Its revision; 0: none. */',
    '/** The bot; undefined: there is none. */',
    '/** A pitch that was none before. */',
    '// It is none of ours.',
    '// Two legs, whose each state is stored.',
    '// The bot is told of the end.',
    '// A client who has not answered is dropped.',
    '/** Who answers talks to the bot. */',
    '/** Undefined: no leg. */',
    '// What becomes of a call.',
    '// A lost node shall not send.',
  ])('%s is refused', (comment) => {
    expect(problemsOfSource(comment)).not.toEqual([]);
  });

  test.each([
    '/** Takes the keys for the second leg. Undefined until its dialog exists. */',
    '/** Returns undefined if there is no bot. */',
    '// Who answered? The verdict says it.',
    "const text = 'Of the second leg';",
    'const first = 1;',
  ])('%s is accepted', (line) => {
    expect(problemsOfSource(line)).toEqual([]);
  });

  test('is read across line ends and reported with its first line', () => {
    const source = ['const a = 1;', '/**', ' * The end is', ' * told of later.', ' */'].join('\n');

    expect(problemsOfSource(source)).toEqual([
      { line: 3, message: '"is told of": say who reports what to whom' },
    ]);
  });

  test('must not be wider than the code', () => {
    const words = 'word '.repeat(30);

    expect(messages(problemsOfSource(`// ${words}`))).toEqual([
      `${words.length + 3} columns, ${maxColumns} are allowed`,
    ]);
    expect(problemsOfSource(`// https://example.com/${'a'.repeat(100)}`)).toEqual([]);
  });
});

describe('a page', () => {
  test('may contain wide tables and code, but no wide prose', () => {
    const wide = 'word '.repeat(30).trim();

    expect(problemsOfPage(`| ${wide} |`)).toEqual([]);
    expect(problemsOfPage(['```sh', wide, '```'].join('\n'))).toEqual([]);
    expect(problemsOfPage(wide)).toHaveLength(1);
  });

  test('is rejected for phrases in its prose, but not in its code', () => {
    expect(problemsOfPage('Who answers talks to the bot.')).toHaveLength(1);
    expect(problemsOfPage('Set `fault: none` or leave it.')).toEqual([]);
  });
});

test('scripts are linted too', () => {
  expect(problemsOfScript('#!/bin/sh\n# Of the tests.\nrun')).toEqual([
    { line: 2, message: '"Of": names no subject: say what the thing is' },
  ]);
});
