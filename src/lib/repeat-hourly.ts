// Repeats work every hour, for the first time half a minute after the start, so that a gateway that
// is restarted often deletes its old data too. We look at the clock instead of setting a timer for
// an hour, because timers stand still while a machine sleeps: the partition of the present day must
// exist soon after it wakes up. If a run fails, the next look tries again.

import type { Logger } from './logger.ts';
import { type Repetition, repeat } from './repeat.ts';

const lookEveryMs = 30_000;
const hourMs = 3_600_000;

export type HourlyOptions = {
  readonly name: string;
  readonly clock: { now(): Date };
  readonly logger: Logger;
};

export function repeatHourly(
  { name, clock, logger }: HourlyOptions,
  work: (stopped: AbortSignal) => Promise<unknown>,
): Repetition {
  let ranAtMs = Number.NEGATIVE_INFINITY;
  return repeat({ name, everyMs: lookEveryMs, logger }, async (stopped) => {
    const nowMs = clock.now().getTime();
    // The clock may have been set back by any amount.
    if (Math.abs(nowMs - ranAtMs) < hourMs) return;
    await work(stopped);
    ranAtMs = nowMs;
  });
}
