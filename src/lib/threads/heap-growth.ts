// Limits the garbage that can accumulate before V8 collects it.

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Allowed heap growth, relative to the live objects after the last collection. */
const percent = 60;
/**
 * V8 lets the heap grow generously if the heap limit is at least this large. With a lower limit,
 * e.g. in a small container, V8's own setting is stricter than ours.
 */
const generousFromBytes = 2_000_000_000;

/**
 * Bounds heap growth in all threads of this process, starting with their next collection. By
 * default, V8 waits until the heap is up to four times the size of its live objects, and then keeps
 * the pages. With a thousand live calls, we needed half of that memory only during call set-up.
 *
 * Don't call this if PGlite is running in one of the threads. In our tests that delayed commands by
 * half a second, probably because PGlite's large memory makes V8 collect garbage constantly.
 */
export function boundHeapGrowth(): void {
  if (isGenerous()) setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/** Factors by which V8 enlarges a thread's young generation. `usual` is V8's default. */
const youngGrowth = { none: 1, usual: 2 } as const;

/**
 * Keeps every thread's young generation, which holds new objects, at its first size of 2 MB. While
 * a program is loaded, most new objects survive. V8 would therefore enlarge the young generation of
 * the main thread to 32 MB, and then hardly ever shrink it. The small size doesn't make a start
 * slower.
 *
 * @returns a function that lets the young generations grow again, for when there are calls.
 *   Idempotent.
 */
export function holdYoungGeneration(): () => void {
  let isHeld = true;
  setYoungGrowth(youngGrowth.none);
  return () => {
    if (isHeld) setYoungGrowth(youngGrowth.usual);
    isHeld = false;
  };
}

function setYoungGrowth(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`);
}

/**
 * Collects the calling thread's garbage. Call this at the end of a thread's start. Otherwise V8 may
 * keep what only the start needed for as long as the thread has little to do.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
}

/**
 * Returns true if V8's heap limit, which depends on the machine or container, is a generous one.
 */
export function isGenerous(): boolean {
  return getHeapStatistics().heap_size_limit >= generousFromBytes;
}
