// Repeats calls if the gateway stood still meanwhile. In that case it has missed audio, so the
// call's result doesn't prove anything.

import { setTimeout as pause } from 'node:timers/promises';
import type { RuntimeFile } from './gateway-process.ts';

/** Shorter pauses are like those in speech. */
export const standstillMs = 400;
export const maxTries = 3;
const tickMs = 20;
/**
 * Interval between two samples. Many short delays do not count as a standstill: only the longest
 * gap between two samples counts.
 */
export const sampleEveryMs = 1_000;
/**
 * Number of attempts for the last sample. A worker that stands still does not answer in time, and
 * its ticks are missing from the sum.
 */
const maxLastSamples = 10;
const answerTimeoutMs = 10_000;

export type UndisturbedOptions = {
  /**
   * Time limit for the whole test. We don't start another attempt after half of it. Default:
   * 120,000, the shortest limit of these tests.
   */
  readonly testTimeoutMs?: number;
  readonly sampleEveryMs?: number;
};

/**
 * Runs `attempt`, which throws if something is wrong. Retries only if the gateway's media clock
 * stood still meanwhile.
 */
export async function undisturbed<Value>(
  ticksLate: () => Promise<number>,
  attempt: () => Promise<Value>,
  options: UndisturbedOptions = {},
): Promise<Value> {
  const beginsUntil = performance.now() + (options.testTimeoutMs ?? 120_000) / 2;
  for (let tries = 1; ; tries += 1) {
    const watch = new StandstillWatch(ticksLate, options.sampleEveryMs ?? sampleEveryMs);
    try {
      return await watch.during(attempt);
    } catch (error) {
      const longestMs = await watch.longestMs();
      const isLast = tries === maxTries || performance.now() > beginsUntil;
      if (longestMs < standstillMs || isLast) throw error;
      console.error(`repeated because the gateway's media stood still for ${longestMs} ms:`, error);
    }
  }
}

/** Measures the longest standstill of a gateway's media. */
export class StandstillWatch {
  readonly #ticksLate: () => Promise<number>;
  readonly #sampleEveryMs: number;
  readonly #over = new AbortController();
  #highest: number | undefined;
  #longestTicks = 0;

  constructor(ticksLate: () => Promise<number>, everyMs: number) {
    this.#ticksLate = ticksLate;
    this.#sampleEveryMs = everyMs;
  }

  async during<Value>(work: () => Promise<Value>): Promise<Value> {
    await this.#sample();
    const over = this.#sampleUntilOver();
    try {
      return await work();
    } finally {
      this.#over.abort();
      await over;
    }
  }

  /**
   * Takes a sample.
   * @returns false if a worker did not answer
   */
  async #sample(): Promise<boolean> {
    const now = await this.#ticksLate();
    const before = this.#highest ?? now;
    if (now < before) return false;
    this.#longestTicks = Math.max(this.#longestTicks, now - before);
    this.#highest = now;
    return true;
  }

  async #sampleUntilOver(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await pause(this.#sampleEveryMs, undefined, { signal }).catch(() => undefined);
      // `longestMs` makes up for a failed sample.
      if (!signal.aborted) await this.#sample().catch(() => undefined);
    }
  }

  /**
   * Takes a last sample and returns the longest standstill.
   * @returns 0 if there is no process left to ask: a gateway that died did not stand still
   */
  async longestMs(): Promise<number> {
    for (let samples = 0; samples < maxLastSamples; samples += 1) {
      const isWhole = await this.#sample().catch(() => undefined);
      if (isWhole === undefined) return 0;
      if (isWhole) return this.#longestTicks * tickMs;
      await pause(this.#sampleEveryMs);
    }
    return 0;
  }
}

/** Reads the number of late ticks, over all calls, from the metrics. */
export async function ticksLateOf({ httpUrl }: Pick<RuntimeFile, 'httpUrl'>): Promise<number> {
  const signal = AbortSignal.timeout(answerTimeoutMs);
  const metrics = await (await fetch(`${httpUrl}/metrics`, { signal })).text();
  const [, count] = /^offhook_media_ticks_late_total (\d+)$/m.exec(metrics) ?? [];
  if (count === undefined) throw new Error('no metric of late ticks');
  return Number(count);
}
