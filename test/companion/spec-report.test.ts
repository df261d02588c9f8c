// The check of a complete run must not overlook a missing proof.

import { expect, test } from 'vitest';
import { type SpecId, specIds } from './spec-ids.ts';
import { missingFrom } from './spec-report.ts';

const all = Object.keys(specIds) as SpecId[];

test('reports unproven items, for each database that lacks the proof', () => {
  const proofs = new Map(all.map((id) => [id, new Set<'postgres' | 'pglite' | 'any'>(['any'])]));
  expect(missingFrom(proofs)).toEqual([]);

  proofs.delete('tables.insert.body.data');
  proofs.set('tables.insert.response._id', new Set(['pglite']));
  proofs.set('tables.insert.response.sys_Id', new Set(['pglite', 'postgres']));
  expect(missingFrom(proofs)).toEqual([
    { id: 'tables.insert.body.data', on: ['postgres', 'pglite'] },
    { id: 'tables.insert.response._id', on: ['postgres'] },
  ]);
});

test('the specification’s list has no item twice', () => {
  expect(new Set(all).size).toBe(all.length);
  expect(
    all.filter(
      (id) => !/^[a-z-]+\.[a-z0-9-]+\.(query|header|path|body|response|rule)\.\S+$/.test(id),
    ),
  ).toEqual([]);
});
