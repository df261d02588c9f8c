// When the INVITE of a call may leave: an instant that its trunk's clock gave it, or another one where that was missed.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallTakes, TrunkLimits, Turn } from '../calls/dialout-ports.ts';
import type { Logger } from '../lib/logger.ts';

/** On this process's monotonic clock. Between the two lies what the answer spent under way. */
export type StartInstant = { readonly earliestMs: number; readonly latestMs: number };

export type TurnPorts = {
  readonly takes: Pick<CallTakes, 'nextStart'>;
  /** Read anew each time: trunks can be reloaded. Undefined: no limits any more. */
  readonly limits: () => TrunkLimits | undefined;
  readonly nowMs: () => number;
  readonly logger: Logger;
};

/**
 * A start that is later than this, and than this share of the time between two, would crowd the ones after it, on this node or
 * another: it takes its turn again. On a slow trunk that is a long way off, for the call and for a hang-up.
 */
const lateMs = 40;
const lateShare = 0.1;
/** A machine that is late so often in a row is overloaded, and its calls would never leave. */
const mostTurns = 5;

/** Asks, and learns from the round trip when the start in the answer is. No clock but this process's is read. */
export async function timed<Answer extends { readonly tookMs: number }>(
  nowMs: () => number,
  ask: () => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly startOf: (startInMs: number) => StartInstant }> {
  const askedAtMs = nowMs();
  const answer = await ask();
  const answeredAtMs = nowMs();
  // The rest of the round trip may all have come after the server wrote its answer.
  const underWayMs = Math.max(0, answeredAtMs - askedAtMs - answer.tookMs);
  const startOf = (startInMs: number): StartInstant => ({
    earliestMs: answeredAtMs - underWayMs + startInMs,
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
      if (rate === undefined || turn === mostTurns || !isWanted()) return;
      const intervalMs = 1_000 / rate;
      if (nowMs() - start.earliestMs <= Math.max(lateMs, intervalMs * lateShare)) return;
      start = await nextStart(ports, trunk, callId, intervalMs);
    }
  };
}

/** Undefined: SQL gives none, and a call that is late is better than one that never leaves. */
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
    logger.warn({ err: error, callId }, 'no later start for a call');
    return undefined;
  }
}
