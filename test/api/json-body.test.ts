// A body that cannot be parsed: the error names the place of the mistake.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJsonBody } from '../../src/http/json-body.ts';
import { jsonMistake } from '../../src/http/json-syntax.ts';
import { dial, type ProblemDocument, startHarness } from './support.ts';

function refusalOf(body: string | Uint8Array): string {
  try {
    parseJsonBody(Buffer.from(body));
  } catch (error) {
    return (error as Error).message;
  }
  return 'it is read';
}

test.each<[string, string]>([
  ['', 'The body is empty: JSON is expected at line 1, column 1.'],
  [' \n ', 'The body is not JSON: it ends at line 2, column 2, where a value is expected.'],
  ['{"botId":', 'The body is not JSON: it ends at line 1, column 10, where a value is expected.'],
  [
    '{"a": [1, 2',
    'The body is not JSON: it ends at line 1, column 12, where a comma or `]` is expected.',
  ],
  [
    '{"a": "b',
    'The body is not JSON: it ends at line 1, column 9, where the closing `"` of a string is expected.',
  ],
  [
    '{\n  "a": 1,\n  }',
    'The body is not JSON: at line 3, column 3 a member name in double quotes is expected after the comma, not `}`.',
  ],
  [
    "{\r\n\r\n'a': 1}",
    "The body is not JSON: at line 3, column 1 a member name in double quotes or `}` is expected, not `'`.",
  ],
  [
    '{"a" 1}',
    'The body is not JSON: at line 1, column 6 a colon is expected after the member name, not `1`.',
  ],
  ['[1 2]', 'The body is not JSON: at line 1, column 4 a comma or `]` is expected, not `2`.'],
  [
    '[1,]',
    'The body is not JSON: at line 1, column 4 a value is expected after the comma, not `]`.',
  ],
  ['{"a": NaN}', 'The body is not JSON: at line 1, column 7 a value is expected, not `N`.'],
  [
    '{} {}',
    'The body is not JSON: at line 1, column 4 nothing more is expected after the value, not `{`.',
  ],
  [
    '{"a": "one\ntwo"}',
    'The body is not JSON: at line 1, column 11 a string contains an unescaped line break or control character.',
  ],
  [
    '{"a": "\\x"}',
    'The body is not JSON: at line 1, column 8 a backslash does not begin a JSON escape, not `\\`.',
  ],
  // A character is one column, however many bytes or code units it has. A byte order mark does not
  // count.
  [
    '\ufeff["😀é",x]',
    'The body is not JSON: at line 1, column 7 a value is expected after the comma, not `x`.',
  ],
])('%j', (body, message) => {
  expect(refusalOf(body)).toBe(message);
});

test.each<[readonly number[], string]>([
  [[0xff], 'line 1, column 1'],
  [[...Buffer.from('{\n"é\ufffd'), 0xc3, 0x22, 0x7d], 'line 2, column 4'],
  [[...Buffer.from('"a'), 0xe2, 0x82], 'line 1, column 3'],
])('names the place of bytes that are not UTF-8: %j', (bytes, place) => {
  expect(refusalOf(Uint8Array.from(bytes))).toBe(
    `The body is not UTF-8: its first invalid byte is at ${place}.`,
  );
});

test('finds a mistake exactly in the texts that JSON.parse refuses', () => {
  const piece = fc.constantFrom(
    ...['{', '}', '[', ']', ',', ':', '"', '"a"', '\\', '\\u00e', '0', '-', '01', '1.5e3', '1.'],
    ...['true', 'null', 'nul', ' ', '\n', '\t', '\u0001', 'é', '{"a":1}', '[1,2]', '""'],
  );
  const nearly = fc
    .tuple(fc.json(), fc.nat(), piece)
    .map(
      ([text, at, put]) =>
        `${text.slice(0, at % (text.length + 1))}${put}${text.slice(at % (text.length + 1))}`,
    );
  const texts = fc.oneof(
    fc.json(),
    nearly,
    fc.array(piece).map((pieces) => pieces.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect(jsonMistake(text) === undefined).toBe(isJson(text));
    }),
    { numRuns: 3_000 },
  );
});

test('reads a body whose nesting is as deep as its length', () => {
  expect(refusalOf('['.repeat(250_000))).toContain('it ends at line 1, column 250001');
});

test('every area answers a 400 that names the place', async () => {
  await using harness = await startHarness();
  const response = await dial(harness, '{"botId": "st-1",\n "target": +1555}');

  expect(response.statusCode).toBe(400);
  expect(response.json<ProblemDocument>().detail).toBe(
    'The body is not JSON: at line 2, column 12 a value is expected, not `+`.',
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
