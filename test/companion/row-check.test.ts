// Checks rows against definitions: the stored values, and the error of each column.

import { describe, expect, test } from 'vitest';
import { checkRow } from '../../src/companion/tables/row-check.ts';
import { type ColumnType, columnTypes, tableDefinition } from '../../src/store/table-definition.ts';

function columnOf(type: ColumnType, required = false) {
  return { columns: [{ name: 'c', type, required }] };
}

/** Returns the stored value, or the error. */
function stored(type: ColumnType, value: unknown): unknown {
  const checked = checkRow(columnOf(type), { c: value });
  return checked.ok ? checked.row['c'] : checked.errors.map(({ message }) => message);
}

describe('a value', () => {
  test.each<[ColumnType, unknown, unknown]>([
    ['string', 'Łódź 🎧', 'Łódź 🎧'],
    ['string', '', ''],
    ['string', "'; drop table calls; --", "'; drop table calls; --"],
    ['number', -0.5, -0.5],
    ['integer', 9_007_199_254_740_991, 9_007_199_254_740_991],
    ['boolean', false, false],
    ['date', '2024-02-29', '2024-02-29'],
    ['datetime', '2026-11-20T11:30:00.123456+02:00', '2026-11-20T09:30:00.123Z'],
    ['datetime', '2026-11-20T09:30:00Z', '2026-11-20T09:30:00.000Z'],
    ['json', { a: [1, null, { b: 'c' }] }, { a: [1, null, { b: 'c' }] }],
    ['json', 'text', 'text'],
  ])('of type %s: %j is kept', (type, value, expected) => {
    expect(stored(type, value)).toEqual(expected);
  });

  test.each<[ColumnType, unknown, string]>([
    ['string', 5, 'must be a string'],
    ['string', 'a\u0000b', 'must not contain the character U+0000'],
    ['string', '\ud800', 'must be well-formed Unicode'],
    ['number', '5', 'must be a number'],
    ['number', Number.POSITIVE_INFINITY, 'must be a number'],
    ['integer', 1.5, 'must be an integer'],
    ['integer', 2 ** 60, 'must be at most 9007199254740991'],
    ['boolean', 'true', 'must be a boolean'],
    ['date', '2025-02-29', 'must be a date, e.g. 2026-11-20'],
    ['date', '2026-11-20T09:30:00Z', 'must be a date, e.g. 2026-11-20'],
    [
      'datetime',
      '2026-11-20T09:30:00',
      'must be an ISO 8601 time with its zone, e.g. 2026-11-20T09:30:00Z',
    ],
    ['datetime', '0000-01-01T00:00:00+12:00', 'must have a four-digit year'],
    ['json', { deep: { '\u0000': 1 } }, 'must not contain the character U+0000'],
    ['json', nested(33), 'must not be nested more than 32 levels deep'],
  ])('of type %s: %j is refused', (type, value, message) => {
    expect(stored(type, value)).toEqual([message]);
  });

  test.each(columnTypes)('of type %s may be null or omitted unless it is required', (type) => {
    const required = { ok: false, errors: [{ path: 'data.c', message: 'is required' }] };

    expect(checkRow(columnOf(type), { c: null })).toEqual({ ok: true, row: { c: null } });
    expect(checkRow(columnOf(type), {})).toEqual({ ok: true, row: {} });
    expect(checkRow(columnOf(type, true), { c: null })).toEqual(required);
    expect(checkRow(columnOf(type, true), {})).toEqual(required);
  });
});

describe('a row', () => {
  test('with more members than any table has columns gets one error', () => {
    const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`c${index}`, 1]));

    expect(checkRow(columnOf('number'), many)).toEqual({
      ok: false,
      errors: [{ path: 'data', message: 'must have at most 500 columns' }],
    });
  });

  test('uses nothing from the prototypes of objects', () => {
    const checked = checkRow(
      {
        columns: [
          { name: 'constructor', type: 'json' },
          { name: 'toString', type: 'string' },
        ],
      },
      {},
    );

    expect(checked).toEqual({ ok: true, row: {} });
  });
});

describe('a definition', () => {
  const definition = { name: 'visits', columns: [{ name: 'c', type: 'string' }], writers: ['*'] };
  const withColumn = (changes: object) => ({
    ...definition,
    columns: [{ name: 'c', type: 'string', ...changes }],
  });

  test.each<[string, object]>([
    [
      'with unicode, quotes and blanks in a name',
      withColumn({ name: `Zażółć "gęślą" 'jaźń'; --` }),
    ],
    ['with the name of an object member', withColumn({ name: 'constructor' })],
    ['that no app may write to yet', { ...definition, writers: [] }],
  ])('%s is accepted', (_name, value) => {
    expect(tableDefinition.safeParse(value).success).toBe(true);
  });

  test.each<[string, object]>([
    ['a table name that is not an id', { ...definition, name: 'a/b' }],
    ['no columns', { ...definition, columns: [] }],
    ['an unknown type', withColumn({ type: 'text' })],
    ['a misspelled member', withColumn({ require: true })],
    ['a system column', withColumn({ name: 'sys_Id' })],
    ['a system column in another case', withColumn({ name: 'created_on' })],
    ['a name that no JSON request can carry', withColumn({ name: '__proto__' })],
    ['a NUL in a name', withColumn({ name: 'a\u0000b' })],
    ['half a character in a name', withColumn({ name: '\ud83d' })],
    ['an empty name', withColumn({ name: '' })],
    ['blanks around a name', withColumn({ name: ' c' })],
    ['a long name', withColumn({ name: 'c'.repeat(129) })],
    [
      'a name twice',
      { ...definition, columns: ['C', 'c'].map((name) => ({ name, type: 'date' })) },
    ],
    ['a writer that is not an id', { ...definition, writers: ['a b'] }],
  ])('with %s is refused', (_name, value) => {
    expect(tableDefinition.safeParse(value).success).toBe(false);
  });
});

function nested(levels: number): unknown {
  return levels === 0 ? 1 : [nested(levels - 1)];
}
