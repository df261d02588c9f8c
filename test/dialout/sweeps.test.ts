// Work that the sweeps repeat, with parts of the test.

import { expect, test } from 'vitest';
import type { Environment } from '../../src/app/environment.ts';
import { type SweepParts, startSweeps } from '../../src/app/sweeps.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { eventually } from '../support/eventually.ts';

test('the next sweep retries the calls of a lost node if the first attempt fails', async () => {
  const steps: string[] = [];
  const parts = {
    storage: { maxRestMs: 0 },
    lateNodes: {
      expire: async () => {
        steps.push('look');
        return steps.length === 1 ? ['b/1'] : [];
      },
    },
    nodes: { takeOverLeft: async () => 0 },
    notifier: { takeOver: async () => undefined },
    recovery: {
      endTakenOver: async () => {
        if (steps.length === 0) return { ended: 0, failed: 0 };
        steps.push('end');
        if (steps.length === 2) throw new Error('the database is unreachable');
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
  await eventually(() => steps.length >= 6, 'several sweeps');
  await sweeps.stop();

  expect(steps.slice(0, 6)).toEqual(['look', 'end', 'look', 'end', 'look', 'look']);
});

test('a process that is alone on its database looks for no other nodes, and retries what earlier processes left', async () => {
  const steps: string[] = [];
  const parts = {
    storage: { maxRestMs: 0 },
    nodes: { takeOverLeft: async () => void steps.push('calls') },
    notifier: { takeOver: async () => void steps.push('notifications') },
    recovery: {
      endTakenOver: async () => {
        steps.push('end');
        return { ended: 0, failed: steps.length < 6 ? 1 : 0 };
      },
      settleEnds: async () => undefined,
    },
  } as unknown as SweepParts;
  const environment = { config: { leaseMs: 80 }, logger: silentLogger } as unknown as Environment;
  const sweeps = await startSweeps(environment, parts);
  await eventually(() => steps.length >= 8, 'all are ended');
  await sweeps.stop();

  const sweep = ['end', 'notifications'];
  expect(steps).toEqual(['calls', 'end', ...sweep, ...sweep, ...sweep]);
});
