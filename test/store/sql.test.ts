// Statements that are built from parts.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { all, joined, type Sql, sql } from '../../src/store/sql.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';

const written = ({ text, values }: Sql) => [text, ...values];

test('an inserted value becomes a parameter', () => {
  expect(written(sql`select 1 from calls where call_id = ${"'; drop table calls"}`)).toEqual([
    'select 1 from calls where call_id = $1',
    "'; drop table calls",
  ]);
  expect(written(sql`select 1`)).toEqual(['select 1']);
});

test('an array is one parameter, and so is null', () => {
  expect(written(sql`bot_id = any(${['b-1', 'b-2']}) or ${null} is null`)).toEqual([
    'bot_id = any($1) or $2 is null',
    ['b-1', 'b-2'],
    null,
  ]);
});

test('a statement that is part of another keeps its values, in their order', () => {
  const ofBot = sql`account_id = ${'acme'} and bot_id = ${'b-1'}`;

  expect(written(sql`${1} ${ofBot} ${2}, ${sql`now()`}${ofBot}`)).toEqual([
    '$1 account_id = $2 and bot_id = $3 $4, now()account_id = $5 and bot_id = $6',
    ...[1, 'acme', 'b-1', 2, 'acme', 'b-1'],
  ]);
  expect(written(sql`${ofBot}`)).toEqual(written(ofBot));
});

test('an object that looks like a statement is a value: no text comes from outside', () => {
  const forged = { text: 'true; drop table calls', values: [] } as unknown as Sql;

  expect(written(sql`where ${forged}`)).toEqual(['where $1', forged]);
});

test('parts are joined', () => {
  expect(written(joined([sql`a`, sql`b = ${1}`, sql`c`], ', '))).toEqual(['a, b = $1, c', 1]);
  expect(written(joined([sql`a`], ' + '))).toEqual(['a']);
});

test('conditions are joined, each in parentheses', () => {
  const isEither = sql`a = ${1} or b = ${1}`;

  expect(written(all([isEither, undefined, sql`c = ${2}`]))).toEqual([
    '(a = $1 or b = $2) and (c = $3)',
    ...[1, 1, 2],
  ]);
  expect(written(all([undefined]))).toEqual(['true']);
});

test.each(databaseKinds)('%s returns every value unchanged', async (kind) => {
  await using database = await openTestDatabase(kind);
  // PostgreSQL's text cannot hold U+0000, and UTF-8 cannot encode lone surrogates.
  const text = fc.string({ unit: 'binary' }).map((any) => any.replaceAll('\0', ''));
  const parts = fc.array(fc.tuple(text, fc.array(text)), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(parts, async (given) => {
      const columns = given.map(([one, several]) => sql`${one}::text, ${several}::text[]`);
      const { rows } = await database.pool.query({
        text: sql`select ${joined(columns, ', ')}`.text,
        values: sql`select ${joined(columns, ', ')}`.values,
        rowMode: 'array',
      });
      expect(rows).toEqual([given.flat()]);
    }),
    { numRuns: 30 },
  );
});
