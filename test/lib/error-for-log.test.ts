// The values of a failed statement stay out of logs and terminals.

import { expect, test } from 'vitest';
import { errorForLog, errorForPeople } from '../../src/lib/error-for-log.ts';

const number = '+15551230001';
const detail = `Key (target)=(${number})`;
const where = `JSON data, line 1: ${number}`;
/** The pool adds this member to its error about a lost connection. */
const client = { parsedStatements: { accept: number } };
const failed = Object.assign(new Error('duplicate key'), { code: '23505', detail, where, client });

test.each([
  ['an error', failed],
  ['a wrapped error', new Error('not stored', { cause: failed })],
])('logs %s without the values of its statement', (_what, error) => {
  const logged = JSON.stringify(errorForLog(error));

  expect(logged).toContain('duplicate key');
  expect(logged).not.toContain(number);
});

test('logs the SQLSTATE', () => {
  expect(errorForLog(failed)).toMatchObject({ code: '23505' });
});

test('shows an error with its causes, and without the values of its statement', () => {
  expect(errorForPeople(new Error('not stored', { cause: failed }))).toBe(
    'not stored\n  duplicate key',
  );
});

test('shows a thrown text as it is', () => {
  expect(errorForPeople('enough')).toBe('enough');
});
