// Whether and when a second leg may be placed. This depends on the numbers and daily calls of its
// app, and on the room and pace of its trunk. The leg waits only while it is wanted.

import { describe, expect, test } from 'vitest';
import type {
  CallingApp,
  CallTakes,
  SecondLegTakes,
  TrunkLimits,
} from '../../src/calls/dialout-ports.ts';
import type { Reachability } from '../../src/calls/ports.ts';
import type { Transfer } from '../../src/calls/transfer/transfer.ts';
import { SecondLegs } from '../../src/dialout/second-legs.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { eventually } from '../support/eventually.ts';

const call = acceptedCall();
const transfer: Transfer = {
  ...{ legId: `${call.callId}-leg-2`, to: { kind: 'tel', number: '4930123456' }, trunk: 'carrier' },
  ...{ mode: 'bridge', timeoutMs: 20_000, caller: '4930', keepStream: false, onFailure: 'hangup' },
};
const { trunk: _, ...direct } = transfer;
const wanted = () => true;

type World = {
  readonly app?: CallingApp | undefined;
  readonly trunkLimits?: TrunkLimits | undefined;
  readonly countToday?: SecondLegTakes['countToday'];
  readonly takeSlot?: SecondLegTakes['takeSlot'];
  readonly release?: CallTakes['release'];
  readonly reach?: () => Reachability;
};

function open(world: World = {}) {
  const log: string[] = [];
  const legs = new SecondLegs({
    takes: {
      countToday: async (...asked) => {
        log.push(`count ${asked[0]} ${asked[1]}`);
        return (await world.countToday?.(...asked)) ?? true;
      },
      takeSlot: async (leg) => {
        log.push(`take ${leg.trunk}`);
        return world.takeSlot === undefined ? { startInMs: 0, tookMs: 0 } : world.takeSlot(leg);
      },
    },
    trunks: {
      nextStart: async () => ({ startInMs: 0, tookMs: 0 }),
      release: async (legIds) => {
        log.push(`release ${legIds.length}`);
        await world.release?.(legIds);
      },
    },
    limitsOf: () => ('trunkLimits' in world ? world.trunkLimits : { maxConcurrentCalls: 1 }),
    apps: { find: async () => ('app' in world ? world.app : {}) },
    suppressions: { reach: async () => world.reach?.() ?? 'free' },
    clock: { now: () => new Date() },
    logger: silentLogger,
  });
  return { legs, log };
}

describe('a second leg is admitted', () => {
  test('with a slot of its trunk', async () => {
    const { legs, log } = open();
    expect(await legs.admit(call, transfer, wanted)).toEqual({ ok: true });
    expect(log).toEqual(['take carrier']);
  });

  test('without a slot for a direct address, a trunk without limits, or a referral', async () => {
    const { legs, log } = open();
    const unlimited = open({ trunkLimits: undefined });
    expect(await legs.admit(call, direct, wanted)).toEqual({ ok: true });
    expect(await legs.admit(call, { ...transfer, mode: 'refer' }, wanted)).toEqual({ ok: true });
    expect(await unlimited.legs.admit(call, transfer, wanted)).toEqual({ ok: true });
    expect([...log, ...unlimited.log]).toEqual([]);
  });

  test('when its turn on the trunk has come', async () => {
    const { legs } = open({ takeSlot: async () => ({ startInMs: 60, tookMs: 0 }) });
    const began = performance.now();
    await legs.admit(call, transfer, wanted);
    // A timer may fire a millisecond early.
    expect(performance.now() - began).toBeGreaterThan(58);
  });

  test('when the trunk has room again, or SQL answers again', async () => {
    let asked = 0;
    const { legs } = open({
      takeSlot: async () => {
        asked += 1;
        if (asked === 1) throw new Error('SQL is unreachable');
        return asked === 2 ? undefined : { startInMs: 0, tookMs: 0 };
      },
    });
    expect(await legs.admit(call, transfer, wanted)).toEqual({ ok: true });
    expect(asked).toBe(3);
  });
});

describe('a second leg is refused', () => {
  test.each(['bridge', 'refer'] as const)(
    'if its number is suppressed (%s), without counting as a call',
    async (mode) => {
      const app: CallingApp = { limits: { callsPerDay: 5 } };
      const { legs, log } = open({ app, reach: () => 'suppressed' });

      const admitted = await legs.admit({ ...call, isRuled: true }, { ...transfer, mode }, wanted);

      expect(admitted).toEqual({
        ok: false,
        reason: 'The number is suppressed',
        isSuppressed: true,
      });
      expect(log).toEqual([]);
    },
  );

  test('while it is not known whether its number is suppressed', async () => {
    const answers: Reachability[] = ['unknown', 'free'];
    const { legs, log } = open({ reach: () => answers.shift() ?? 'free' });

    expect(await legs.admit({ ...call, isRuled: true }, transfer, wanted)).toEqual({ ok: true });
    expect(answers).toEqual([]);
    expect(log).toEqual(['take carrier']);
  });

  test.each<[string, World, Transfer | Omit<Transfer, 'trunk'>, string]>([
    ['an app that no longer exists', { app: undefined }, transfer, 'The app no longer exists'],
    [
      'a number that the app may not call',
      { app: { limits: { allowedPrefixes: ['1'] } } },
      transfer,
      'The app may not dial this number',
    ],
    [
      'a referral to a number that the app may not call',
      { app: { limits: { deniedPrefixes: ['49'] } } },
      { ...transfer, mode: 'refer' },
      'The app may not dial this number',
    ],
    [
      'an app that has reached its calls per day',
      { app: { limits: { callsPerDay: 5 } }, countToday: async () => false },
      transfer,
      'The app has reached its calls per day',
    ],
  ])('%s', async (_name, world, asked, reason) => {
    const { legs, log } = open(world);
    expect(await legs.admit(call, asked, wanted)).toEqual({ ok: false, reason });
    expect(log.filter((line) => line.startsWith('take'))).toEqual([]);
  });

  test('when it is no longer wanted, and a slot that may have been taken is given back', async () => {
    let isWanted = true;
    const { legs, log } = open({
      takeSlot: async () => {
        isWanted = false;
        throw new Error('the answer was lost');
      },
    });
    expect(await legs.admit(call, transfer, () => isWanted)).toEqual({
      ...{ ok: false, reason: 'The trunk has no room' },
    });
    await eventually(() => log.includes('release 1'), 'it is given back');
    expect(log).toEqual(['take carrier', 'release 1']);
  });

  test('without any query if it is not wanted', async () => {
    const { legs, log } = open({ app: { limits: { callsPerDay: 5 } } });
    expect(await legs.admit(call, transfer, () => false)).toMatchObject({ ok: false });
    expect(log).toEqual([]);
  });
});

describe('a slot', () => {
  test('is given back once, with retries until SQL has stored it', async () => {
    let failures = 1;
    const { legs, log } = open({
      release: async () => {
        failures -= 1;
        if (failures >= 0) throw new Error('SQL is unreachable');
      },
    });
    await legs.admit(call, transfer, wanted);
    legs.giveBack(transfer.legId);
    legs.giveBack(transfer.legId);
    await eventually(() => log.length === 3, 'it is released');
    expect(log).toEqual(['take carrier', 'release 1', 'release 1']);
  });

  test('is not given back if it was never taken', async () => {
    const { legs, log } = open();
    await legs.admit(call, direct, wanted);
    legs.giveBack(transfer.legId);
    expect(log).toEqual([]);
  });
});
