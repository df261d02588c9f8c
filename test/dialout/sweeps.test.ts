// Work that the sweeps repeat, with parts of the test.

import { expect, test } from 'vitest';
import type { Environment } from '../../src/app/environment.ts';
import { type SweepParts, startSweeps } from '../../src/app/sweeps.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { eventually } from '../support/eventually.ts';

test('the next sweep retries the calls of a lost node if the first attempt fails', async () => {
  const told: string[] = [];
  const parts = {
    storage: { longestRestMs: 0 },
    node: {
      store: {
        expireOthers: async () => {
          told.push('look');
          return told.length === 1 ? ['b/1'] : [];
        },
        takeOverLeft: async () => 0,
      },
    },
    notifier: { takeOver: async () => undefined },
    recovery: {
      endTakenOver: async () => {
        if (told.length === 0) return { ended: 0, failed: 0 };
        told.push('end');
        if (told.length === 2) throw new Error('the database is unreachable');
        return { ended: 1, failed: 0 };
      },
      settleEnds: async () => undefined,
    },
  } as unknown as SweepParts;
  const config = { leaseMs: 80, databaseUrl: 'postgres://shared' };
  const sweeps = await startSweeps(
    { config, logger: silentLogger } as unknown as Environment,
    parts,
  );
  await eventually(() => told.length >= 6, 'several sweeps');
  await sweeps.stop();

  expect(told.slice(0, 6)).toEqual(['look', 'end', 'look', 'end', 'look', 'look']);
});

test('a process that is alone on its database looks for no other nodes, and retries what earlier processes left', async () => {
  const told: string[] = [];
  const parts = {
    storage: { longestRestMs: 0 },
    node: { store: { takeOverLeft: async () => void told.push('calls') } },
    notifier: { takeOver: async () => void told.push('notifications') },
    recovery: {
      endTakenOver: async () => {
        told.push('end');
        return { ended: 0, failed: told.length < 6 ? 1 : 0 };
      },
      settleEnds: async () => undefined,
    },
  } as unknown as SweepParts;
  const environment = { config: { leaseMs: 80 }, logger: silentLogger } as unknown as Environment;
  const sweeps = await startSweeps(environment, parts);
  await eventually(() => told.length >= 8, 'all are ended');
  await sweeps.stop();

  const sweep = ['end', 'notifications'];
  expect(told).toEqual(['calls', 'end', ...sweep, ...sweep, ...sweep]);
});
