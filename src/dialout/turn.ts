// Decides when a call's INVITE may be sent. That's either at the start time that the call was
// assigned on its trunk, or at a later one if the call has missed it.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallTakes, TrunkLimits, Turn } from '../calls/dialout-ports.ts';
import type { Logger } from '../lib/logger.ts';

/**
 * Bounds for a start on this process's monotonic clock. The true start lies between the two bounds,
 * which differ by the time that the database's response may have spent on the network.
 */
export type StartInstant = { readonly earliestMs: number; readonly latestMs: number };

export type TurnPorts = {
  readonly takes: Pick<CallTakes, 'nextStart'>;
  /**
   * Returns the current limits, which may change when trunks are reloaded, or undefined if the
   * trunk no longer has any.
   */
  readonly limits: () => TrunkLimits | undefined;
  readonly nowMs: () => number;
  readonly logger: Logger;
};

/**
 * A call has missed its start if it's late by more than both `lateMs` and `lateShare` of the
 * interval between two starts. Such a call would crowd the following starts, on this node or
 * another, so it requests a new start. The share matters on slow trunks, where the next start is
 * far away.
 */
const lateMs = 40;
const lateShare = 0.1;
/**
 * A host that is late this many times in a row is overloaded. Without this limit, its calls would
 * never be dialled.
 */
const maxTurns = 5;

/**
 * Asks the database for a start, and uses the round-trip time to convert that start to this
 * process's clock. We don't read any other clock.
 */
export async function timed<Answer extends { readonly tookMs: number }>(
  nowMs: () => number,
  ask: () => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly startOf: (startInMs: number) => StartInstant }> {
  const askedAtMs = nowMs();
  const answer = await ask();
  const answeredAtMs = nowMs();
  // In the worst case, the rest of the round trip was all spent on the way back.
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
 * Requests a new start.
 * @returns undefined if the database doesn't assign one. The INVITE is then sent immediately,
 * because a late call is better than no call
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
