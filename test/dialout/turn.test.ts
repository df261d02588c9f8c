// When an INVITE may leave, on a clock that the test sets. It depends on how long the server took,
// and on the way of its answer.

import { expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { createTurn, timed } from '../../src/dialout/turn.ts';
import { silentLogger } from '../../src/lib/logger.ts';

type Story = {
  /** Time in the server, e.g. behind other nodes at the trunk's clock. */
  readonly tookMs?: number;
  /** Time on the network, or while this process stood still. */
  readonly underWayMs?: number;
  /** Time until the INVITE is ready. */
  readonly preparedAfterMs?: number;
  readonly callsPerSecond?: number;
  readonly isWanted?: () => boolean;
};

/** Returns how many more turns a call takes. */
async function turnsOf({
  tookMs = 0,
  underWayMs = 0,
  preparedAfterMs = 0,
  callsPerSecond = 20,
  isWanted = () => true,
}: Story): Promise<number> {
  let nowMs = 1_000;
  let turns = 0;
  const first = await timed(
    () => nowMs,
    async () => {
      nowMs += tookMs + underWayMs;
      return { tookMs };
    },
  );
  const turn = createTurn(
    {
      takes: {
        nextStart: async () => {
          turns += 1;
          return { startInMs: 0, tookMs: 0 };
        },
      },
      limits: () => ({ callsPerSecond }),
      nowMs: () => nowMs,
      logger: silentLogger,
    },
    'carrier',
    'call-1' as CallId,
    first.startOf(0),
  );
  nowMs += preparedAfterMs;
  await turn(isWanted);
  return turns;
}

test('a call is on time even if its node waited for other nodes at the trunk', async () => {
  expect(await turnsOf({ tookMs: 500 })).toBe(0);
});

test('a call takes another turn if the answer took long on the network', async () => {
  expect(await turnsOf({ underWayMs: 100 })).toBe(1);
});

test('a call takes another turn if it is not ready at its own', async () => {
  expect(await turnsOf({ preparedAfterMs: 100 })).toBe(1);
});

test('a late call that is no longer wanted takes no further turn', async () => {
  expect(await turnsOf({ preparedAfterMs: 100, isWanted: () => false })).toBe(0);
});

test('a call on a slow trunk does not take a distant turn for a small delay', async () => {
  expect(await turnsOf({ preparedAfterMs: 900, callsPerSecond: 0.1 })).toBe(0);
});
