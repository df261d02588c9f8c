// One node of a trunk whose database answers late, by a clock that the test turns.

import { expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { Taken } from '../../src/calls/dialout-ports.ts';
import { TrunkPacer } from '../../src/dialout/trunk-pacer.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { eventually } from '../support/eventually.ts';

/** The database's clock is not this process's. */
const aheadMs = 1_000_000;

/** Its second answer gives out a call; the clock goes on so far before and after the database has read its own. */
async function startOne({ beforeMs = 0, afterMs = 0, callsPerSecond = 20, isWanted = () => true }) {
  let nowMs = 0;
  let answers = 0;
  let turns = 0;
  const started: CallId[] = [];
  const pacer = new TrunkPacer('carrier', {
    queue: {
      take: async (): Promise<Taken> => {
        answers += 1;
        if (answers === 1) return { grants: [], clockMs: nowMs + aheadMs, retryInMs: 0 };
        nowMs += beforeMs;
        const clockMs = nowMs + aheadMs;
        nowMs += afterMs;
        return { grants: [{ call: acceptedCall(), startAtMs: clockMs }], clockMs };
      },
      untold: async () => [],
      nextStart: async () => {
        turns += 1;
        return { startAtMs: nowMs + aheadMs, clockMs: nowMs + aheadMs };
      },
      release: async () => undefined,
      releaseLost: async () => undefined,
      waitingByTrunk: async () => new Map(),
    },
    limits: () => ({ callsPerSecond }),
    known: () => [],
    room: () => 10,
    endIfExpired: async () => false,
    start: ({ callId }, turn) => void turn(isWanted).then(() => started.push(callId)),
    nowMs: () => nowMs,
    logger: silentLogger,
  });
  pacer.wake();
  await eventually(() => started.length === 1, 'the call is started');
  await pacer.stop();
  return turns;
}

test('a call is on time though its node had to wait for the others at the trunk', async () => {
  expect(await startOne({ beforeMs: 500 })).toBe(0);
});

test('a call takes another turn when its node stood still after it was given its start', async () => {
  expect(await startOne({ afterMs: 100 })).toBe(1);
});

test('a call that is late and that nobody wants any more takes no turn of the others', async () => {
  expect(await startOne({ afterMs: 100, isWanted: () => false })).toBe(0);
});

test('a call of a slow trunk, whose next turn is far away, does not take one for a moment', async () => {
  expect(await startOne({ afterMs: 900, callsPerSecond: 0.1 })).toBe(0);
});
