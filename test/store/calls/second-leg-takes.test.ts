// What a second leg needs from SQL: a slot of its trunk, from the same slots as first legs, and a
// place among its app's calls of the day.

import { beforeEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { CallTakes, SecondLegTakes, TrunkLimits } from '../../../src/calls/dialout-ports.ts';
import { createSecondLegTakes } from '../../../src/store/calls/second-leg-takes.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

describe.each(databaseKinds)('a second leg on %s', (kind) => {
  let rig: LedgerRig;
  let legs: readonly [SecondLegTakes, SecondLegTakes];
  let calls: CallTakes;
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });
  beforeEach(() => {
    const { pool } = rig.database;
    rig.setNow(new Date());
    legs = [createSecondLegTakes(pool, 'a/1'), createSecondLegTakes(pool, 'b/1')];
    calls = takesOf(pool, 'a/1');
  });

  const legOf = (name: string, limits: TrunkLimits, trunk = 'carrier') => ({
    ...{ legId: `${name}-leg-2`, callId: name as CallId, trunk, limits },
  });
  const slots = async () => {
    const { rows } = await rig.database.pool.query<{ leg_id: string; owner_id: string }>(
      'select leg_id, owner_id from trunk_slots order by leg_id',
    );
    return rows.map((row) => `${row.leg_id} of ${row.owner_id}`);
  };

  describe('takes a slot of its trunk', () => {
    test('while one is free across all nodes, and releases it when the leg has ended', async () => {
      const limits = { maxConcurrentCalls: 2 };
      expect(await legs[0].takeSlot(legOf('one', limits))).toBeDefined();
      expect(await legs[1].takeSlot(legOf('two', limits))).toBeDefined();
      expect(await legs[0].takeSlot(legOf('three', limits))).toBeUndefined();
      expect(await legs[0].takeSlot(legOf('three', limits, 'another'))).toBeDefined();
      expect(await slots()).toEqual([
        ...['one-leg-2 of a/1', 'three-leg-2 of a/1', 'two-leg-2 of b/1'],
      ]);

      await calls.release(['one-leg-2', 'nobody-leg-2']);
      expect(await legs[1].takeSlot(legOf('four', limits))).toBeDefined();
    });

    test('that counts together with the slots of first legs', async () => {
      const base = acceptedCall({ acceptedAt: new Date() });
      const waiting = { ...base, request: { ...base.request, trunk: 'carrier' } };
      await rig.ledger.accept(waiting, {});
      const limits = { maxConcurrentCalls: 1 };
      const take = async (takeId: number) =>
        (
          await calls.take({
            ...{ takeId, isRepeated: false, source: 'carrier', limits },
            ...{ wanted: 5, horizonMs: 200 },
          })
        ).grants.length;

      expect(await legs[0].takeSlot(legOf('one', limits))).toBeDefined();
      expect(await take(1)).toBe(0);
      await calls.release(['one-leg-2']);
      expect(await take(2)).toBe(1);
      expect(await legs[0].takeSlot(legOf('one', limits))).toBeUndefined();
    });

    test('once: a repetition after a lost answer gets the same slot and start', async () => {
      const limits = { maxConcurrentCalls: 1, callsPerSecond: 0.01 };
      const startOf = async () => {
        const { rows } = await rig.database.pool.query<{ start_at: Date }>(
          'select start_at from trunk_slots',
        );
        return rows.map((row) => row.start_at.getTime());
      };
      await legs[0].takeSlot(legOf('one', limits));
      const first = await startOf();
      expect(await legs[0].takeSlot(legOf('one', limits))).toBeDefined();

      expect(await startOf()).toEqual(first);
      expect(first).toHaveLength(1);
    });

    test('at the pace of the trunk, which also delays the next first leg', async () => {
      // A slow rate, so that pauses between two statements do not matter.
      const limits = { callsPerSecond: 0.001 };
      const first = await legs[0].takeSlot(legOf('one', limits));
      const second = await legs[1].takeSlot(legOf('two', limits));
      const third = await calls.nextStart('carrier', 1_000_000);

      expect(first?.startInMs).toBeLessThanOrEqual(0);
      expect(Math.round((second?.startInMs ?? 0) / 1_000_000)).toBe(1);
      expect(Math.round(third.startInMs / 1_000_000)).toBe(2);
    });

    test('one after the other if many legs ask concurrently', async () => {
      const limits = { maxConcurrentCalls: 3 };
      const taken = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          (legs[index % 2] as SecondLegTakes).takeSlot(legOf(`call-${index}`, limits)),
        ),
      );
      expect(taken.filter((slot) => slot !== undefined)).toHaveLength(3);
      expect(await slots()).toHaveLength(3);
    });
  });

  describe('counts against the daily limit of its app', () => {
    const evening = new Date('2026-03-01T23:59:59.999Z');
    const midnight = new Date('2026-03-02T00:00:00.000Z');

    test('until the limit is reached', async () => {
      const counted = [1, 2, 3].map(() => legs[0].countToday('app-1', 2, evening));
      expect((await Promise.all(counted)).filter(Boolean)).toHaveLength(2);
      expect(await legs[1].countToday('app-1', 2, evening)).toBe(false);
      expect(await legs[1].countToday('app-2', 2, evening)).toBe(true);
      // Simulates a raised limit.
      expect(await legs[0].countToday('app-1', 3, evening)).toBe(true);
    });

    test('which restarts at midnight UTC, and is not reset by a clock that is behind', async () => {
      expect(await legs[0].countToday('app-1', 1, evening)).toBe(true);
      expect(await legs[0].countToday('app-1', 1, midnight)).toBe(true);
      expect(await legs[1].countToday('app-1', 1, evening)).toBe(false);
    });

    test('even if the limit is 0', async () => {
      expect(await legs[0].countToday('app-1', 0, evening)).toBe(false);
    });
  });
});
