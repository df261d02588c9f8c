// A gateway that stood still in the middle of a call did not hear what was said: of what comes of it nothing is to be learnt, and
// the call is placed again.

import { setTimeout as pause } from 'node:timers/promises';
import type { RuntimeFile } from './gateway-process.ts';

/** Pauses that are shorter are those of speech. */
export const standstillMs = 400;
export const maxTries = 3;
const tickMs = 20;
/** Many short delays are no standstill: what counts is the longest between two looks. */
export const lookEveryMs = 1_000;
/** A worker that stands still does not answer in time, and its ticks are missing from the sum. */
const maxLooksAtTheEnd = 10;
const answerTimeoutMs = 10_000;

export type UndisturbedOptions = {
  /** Of the whole test: when half of it is over, nothing is begun again. By default that of the shortest of these tests. */
  readonly testTimeoutMs?: number;
  readonly lookEveryMs?: number;
};

/** `attempt` fails with what is wrong. Only where the clock of the gateway's media stood still meanwhile is it made again. */
export async function undisturbed<Value>(
  ticksLate: () => Promise<number>,
  attempt: () => Promise<Value>,
  options: UndisturbedOptions = {},
): Promise<Value> {
  const beginsUntil = performance.now() + (options.testTimeoutMs ?? 120_000) / 2;
  for (let tries = 1; ; tries += 1) {
    const watch = new StandstillWatch(ticksLate, options.lookEveryMs ?? lookEveryMs);
    try {
      return await watch.during(attempt);
    } catch (error) {
      const longestMs = await watch.longestMs();
      const isLast = tries === maxTries || performance.now() > beginsUntil;
      if (longestMs < standstillMs || isLast) throw error;
      console.error(`made again, as the gateway's media stood still for ${longestMs} ms:`, error);
    }
  }
}

/** How long a gateway's media stood still at the longest. */
export class StandstillWatch {
  readonly #ticksLate: () => Promise<number>;
  readonly #lookEveryMs: number;
  readonly #over = new AbortController();
  #highest: number | undefined;
  #longestTicks = 0;

  constructor(ticksLate: () => Promise<number>, everyMs: number) {
    this.#ticksLate = ticksLate;
    this.#lookEveryMs = everyMs;
  }

  async during<Value>(work: () => Promise<Value>): Promise<Value> {
    await this.#look();
    const over = this.#lookUntilOver();
    try {
      return await work();
    } finally {
      this.#over.abort();
      await over;
    }
  }

  /** False where a worker did not answer. */
  async #look(): Promise<boolean> {
    const now = await this.#ticksLate();
    const before = this.#highest ?? now;
    if (now < before) return false;
    this.#longestTicks = Math.max(this.#longestTicks, now - before);
    this.#highest = now;
    return true;
  }

  async #lookUntilOver(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await pause(this.#lookEveryMs, undefined, { signal }).catch(() => undefined);
      // What cannot be asked now is asked at the end.
      if (!signal.aborted) await this.#look().catch(() => undefined);
    }
  }

  /** With a last look. 0 where there is no process left to be asked: a gateway that died is no gateway that stood still. */
  async longestMs(): Promise<number> {
    for (let looks = 0; looks < maxLooksAtTheEnd; looks += 1) {
      const isWhole = await this.#look().catch(() => undefined);
      if (isWhole === undefined) return 0;
      if (isWhole) return this.#longestTicks * tickMs;
      await pause(this.#lookEveryMs);
    }
    return 0;
  }
}

/** Of all its calls, as its metrics have it. */
export async function ticksLateOf({ httpUrl }: Pick<RuntimeFile, 'httpUrl'>): Promise<number> {
  const signal = AbortSignal.timeout(answerTimeoutMs);
  const metrics = await (await fetch(`${httpUrl}/metrics`, { signal })).text();
  const [, count] = /^offhook_media_ticks_late_total (\d+)$/m.exec(metrics) ?? [];
  if (count === undefined) throw new Error('no metric of late ticks');
  return Number(count);
}
