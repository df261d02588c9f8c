// What a failed statement carried stays out of logs and terminals.

import { expect, test } from 'vitest';
import { errorForLog, errorForPeople } from '../../src/lib/error-for-log.ts';

const number = '+15551230001';
const detail = `Key (target)=(${number})`;
const where = `JSON data, line 1: ${number}`;
/** As a pool puts it into what it says of a lost connection. */
const client = { parsedStatements: { accept: number } };
const failed = Object.assign(new Error('duplicate key'), { code: '23505', detail, where, client });

test.each([
  ['an error', failed],
  ['one that was wrapped', new Error('not stored', { cause: failed })],
])('%s is logged without the values of its statement', (_what, error) => {
  const logged = JSON.stringify(errorForLog(error));

  expect(logged).toContain('duplicate key');
  expect(logged).not.toContain(number);
});

test('the SQLSTATE is logged', () => {
  expect(errorForLog(failed)).toMatchObject({ code: '23505' });
});

test('an error is shown with its causes, and without the values of its statement', () => {
  expect(errorForPeople(new Error('not stored', { cause: failed }))).toBe(
    'not stored\n  duplicate key',
  );
});

test('what is no error is shown as it is', () => {
  expect(errorForPeople('enough')).toBe('enough');
});
