// Decides when the INVITE of a call may leave: at the instant that the trunk's clock assigned to
// it, or at a later one if that instant was missed.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallTakes, TrunkLimits, Turn } from '../calls/dialout-ports.ts';
import type { Logger } from '../lib/logger.ts';

/**
 * Instants on this process's monotonic clock. The true start lies between them: the difference is
 * the time that the answer may have spent on the network.
 */
export type StartInstant = { readonly earliestMs: number; readonly latestMs: number };

export type TurnPorts = {
  readonly takes: Pick<CallTakes, 'nextStart'>;
  /**
   * Read anew each time, because trunks can be reloaded. Undefined if the trunk has no limits any
   * more.
   */
  readonly limits: () => TrunkLimits | undefined;
  readonly nowMs: () => number;
  readonly logger: Logger;
};

/**
 * A start is too late if it is later than both `lateMs` and `lateShare` of the interval between two
 * starts. It would crowd the starts after it, on this node or another, so the call takes another
 * turn. On a slow trunk the next turn is far away, both for the call and for a hang-up.
 */
const lateMs = 40;
const lateShare = 0.1;
/**
 * A machine that is late this often in a row is overloaded. Without this bound its calls would
 * never leave.
 */
const maxTurns = 5;

/**
 * Asks SQL for a start and computes, from the round trip, when that start is on this process's
 * clock. No other clock is read.
 */
export async function timed<Answer extends { readonly tookMs: number }>(
  nowMs: () => number,
  ask: () => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly startOf: (startInMs: number) => StartInstant }> {
  const askedAtMs = nowMs();
  const answer = await ask();
  const answeredAtMs = nowMs();
  // The rest of the round trip may all have passed after the server wrote its answer.
  const inTransitMs = Math.max(0, answeredAtMs - askedAtMs - answer.tookMs);
  const startOf = (startInMs: number): StartInstant => ({
    earliestMs: answeredAtMs - inTransitMs + startInMs,
    latestMs: answeredAtMs + startInMs,
  });
  return { answer, startOf };
}

export function createTurn(
  ports: TurnPorts,
  trunk: string,
  callId: CallId,
  first: StartInstant,
): Turn {
  const { nowMs, limits } = ports;
  return async (isWanted) => {
    let start: StartInstant | undefined = first;
    for (let turn = 0; start !== undefined; turn += 1) {
      const leftMs = start.latestMs - nowMs();
      if (leftMs > 0) await pause(leftMs);
      const rate = limits()?.callsPerSecond;
      if (rate === undefined || turn === maxTurns || !isWanted()) return;
      const intervalMs = 1_000 / rate;
      if (nowMs() - start.earliestMs <= Math.max(lateMs, intervalMs * lateShare)) return;
      start = await nextStart(ports, trunk, callId, intervalMs);
    }
  };
}

/**
 * Takes another turn.
 * @returns undefined if SQL assigns none. The call then leaves at once: a late call is better than
 * a call that never leaves
 */
async function nextStart(
  { nowMs, takes, logger }: TurnPorts,
  trunk: string,
  callId: CallId,
  intervalMs: number,
): Promise<StartInstant | undefined> {
  try {
    const next = await timed(nowMs, () => takes.nextStart(trunk, intervalMs));
    return next.startOf(next.answer.startInMs);
  } catch (error) {
    logger.warn({ err: error, callId }, 'SQL assigned no later start to a call');
    return undefined;
  }
}
