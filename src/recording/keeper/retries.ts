// When the keeper tries again to store a recording.

const minuteMs = 60_000;

/** After the first, second, … failed attempt. Then once an hour. */
const pausesMs = [2_000, 10_000, 30_000, 2 * minuteMs, 10 * minuteMs, 30 * minuteMs];
const thenEveryMs = 60 * minuteMs;
/** Counts from the first claim, soon after the call. Then the last attempt is made. */
export const giveUpAfterMs = 24 * 60 * minuteMs;
/** Spreads out the attempts of recordings that failed together. */
const jitter = 0.2;

/** @param random from 0 to 1 */
export function retryPauseMs(failures: number, random: number): number {
  return Math.round((pausesMs[failures - 1] ?? thenEveryMs) * (1 + jitter * random));
}
