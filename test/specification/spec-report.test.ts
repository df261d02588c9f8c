// The report on a complete run must not overlook any item that isn't covered.

import { expect, test } from 'vitest';
import { type SpecId, specIds } from './spec-ids.ts';
import { missingFrom } from './spec-report.ts';

const all = Object.keys(specIds) as SpecId[];

test('reports the items that no test covers, with the databases that lack a test', () => {
  const coverage = new Map(all.map((id) => [id, new Set<'postgres' | 'pglite' | 'any'>(['any'])]));
  expect(missingFrom(coverage)).toEqual([]);

  coverage.delete('tables.insert.body.data');
  coverage.set('tables.insert.response._id', new Set(['pglite']));
  coverage.set('tables.insert.response.sys_Id', new Set(['pglite', 'postgres']));
  expect(missingFrom(coverage)).toEqual([
    { id: 'tables.insert.body.data', on: ['postgres', 'pglite'] },
    { id: 'tables.insert.response._id', on: ['postgres'] },
  ]);
});

test('every id of the specification occurs once and is well formed', () => {
  expect(new Set(all).size).toBe(all.length);
  expect(
    all.filter(
      (id) => !/^[a-z-]+\.[a-z0-9-]+\.(query|header|path|body|response|rule)\.\S+$/.test(id),
    ),
  ).toEqual([]);
});
