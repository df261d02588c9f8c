// The check of a whole run would be no check if it let something pass.

import { expect, test } from 'vitest';
import { type SpecId, specIds } from './spec-ids.ts';
import { missingFrom } from './spec-report.ts';

const all = Object.keys(specIds) as SpecId[];

test('what no test proved is missing, on each database that lacks it', () => {
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

test('no item stands in the specification’s list twice', () => {
  expect(new Set(all).size).toBe(all.length);
  expect(
    all.filter(
      (id) => !/^[a-z-]+\.[a-z0-9-]+\.(query|header|path|body|response|rule)\.\S+$/.test(id),
    ),
  ).toEqual([]);
});
