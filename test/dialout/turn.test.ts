// When an INVITE may leave, by a clock that the test turns: what the server's answer and its way back took.

import { expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { createTurn, timed } from '../../src/dialout/turn.ts';
import { silentLogger } from '../../src/lib/logger.ts';

type Story = {
  /** In the server, e.g. behind other nodes at the trunk's clock. */
  readonly tookMs?: number;
  /** On its way, or while this process stood still. */
  readonly underWayMs?: number;
  /** Until the INVITE is ready. */
  readonly preparedAfterMs?: number;
  readonly callsPerSecond?: number;
  readonly isWanted?: () => boolean;
};

/** How many more turns a call takes. */
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

test('a call is on time though its node had to wait for the others at the trunk', async () => {
  expect(await turnsOf({ tookMs: 500 })).toBe(0);
});

test('a call takes another turn when the answer was under way for long', async () => {
  expect(await turnsOf({ underWayMs: 100 })).toBe(1);
});

test('a call takes another turn when it is not prepared by its own', async () => {
  expect(await turnsOf({ preparedAfterMs: 100 })).toBe(1);
});

test('a call that is late and not wanted any more takes no turn of the others', async () => {
  expect(await turnsOf({ preparedAfterMs: 100, isWanted: () => false })).toBe(0);
});

test('a call of a slow trunk, whose next turn is far away, does not take one for a moment', async () => {
  expect(await turnsOf({ preparedAfterMs: 900, callsPerSecond: 0.1 })).toBe(0);
});
