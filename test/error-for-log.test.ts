// What a failed statement carried stays out of logs and terminals.

import { DrizzleQueryError } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { errorForLog, errorForPeople } from '../src/lib/error-for-log.ts';

const number = '+15551230001';
const cause = Object.assign(new Error('duplicate key'), { detail: `Key (target)=(${number})` });
const failed = new DrizzleQueryError('insert into calls values ($1)', [number], cause);

test('an error is logged without the values of its statement', () => {
  const logged = JSON.stringify(errorForLog(new Error('not stored', { cause: failed })));

  expect(logged).toContain('insert into calls values ($1)');
  expect(logged).toContain('duplicate key');
  expect(logged).not.toContain(number);
});

test('an error is shown with its causes, and without the values of its statement', () => {
  expect(errorForPeople(new Error('not stored', { cause: failed }))).toBe(
    'not stored\n  Failed query: insert into calls values ($1)\n  duplicate key',
  );
});

test('what is no error is shown as it is', () => {
  expect(errorForPeople('enough')).toBe('enough');
});
