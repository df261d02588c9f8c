// A leg between the moment that it is ready and the turn of its INVITE.

import { describe, expect, test } from 'vitest';
import type { CallLeg, LegFailure } from '../../src/calls/ports.ts';
import { HeldLeg } from '../../src/dialout/held-leg.ts';

function rig({ isBroken = false } = {}) {
  const done: string[] = [];
  const failures: LegFailure[] = [];
  let come = (): void => undefined;
  let release = (): void => undefined;
  const turn = new Promise<void>((resolve) => {
    come = resolve;
  });
  const placed: CallLeg = {
    cancel: (reason) => done.push(`cancel ${reason}`),
    acknowledge: () => done.push('acknowledge'),
    hangUp: (reason) => done.push(`hang up ${reason}`),
    released: new Promise((resolve) => {
      release = resolve;
    }),
  };
  let isWanted = (): boolean => false;
  const leg = new HeldLeg({
    turn: (asked) => {
      isWanted = asked;
      return turn;
    },
    place: () => {
      if (isBroken) throw new Error('a defect');
      done.push('place');
      return placed;
    },
    observer: { onFailed: (failure) => failures.push(failure) },
    clock: { now: () => new Date(0) },
  });
  const onTurn = async (): Promise<void> => {
    come();
    await turn;
  };
  return { leg, done, failures, onTurn, isWanted: () => isWanted(), release: () => release() };
}

describe('a held leg', () => {
  test('is placed at its turn, and is the placed one from there on', async () => {
    const { leg, done, failures, onTurn, release } = rig();
    leg.acknowledge();
    expect(done).toEqual([]);

    await onTurn();
    leg.cancel('a');
    leg.acknowledge();
    leg.hangUp('b');
    release();
    await leg.released;

    expect(done).toEqual(['place', 'cancel a', 'acknowledge', 'hang up b']);
    expect(failures).toEqual([]);
  });

  test.each(['cancel', 'hangUp'] as const)(
    'given up by %s before its turn, it never was on the wire',
    async (how) => {
      const { leg, done, failures, onTurn, isWanted } = rig();
      expect(isWanted()).toBe(true);
      leg[how]('the caller does not want it');
      leg[how]('twice');
      expect(isWanted()).toBe(false);
      await leg.released;
      await onTurn();

      expect(done).toEqual([]);
      expect(failures).toEqual([
        {
          at: new Date(0),
          sipStatus: 487,
          kind: 'cancelled',
          reason: 'the caller does not want it',
        },
      ]);
    },
  );

  test('that cannot be placed has failed', async () => {
    const { leg, failures, onTurn } = rig({ isBroken: true });
    await onTurn();
    await leg.released;

    expect(failures).toMatchObject([
      { kind: 'transport', reason: 'The INVITE could not be sent: Error: a defect' },
    ]);
  });
});
