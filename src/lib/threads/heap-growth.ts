// Limits how much garbage may accumulate before V8 collects it.

import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/** Allowed growth over the size of the live objects after the last collection. */
const percent = 60;
/**
 * Above this heap limit, V8 lets the heap grow generously. Below it (in a small container), V8's
 * own setting is stricter than ours.
 */
const generousFromBytes = 2_000_000_000;

/**
 * Bounds the heap growth of all threads in this process, from their next collection on. By default,
 * V8 waits until the heap is up to four times as large as its live part, and then keeps the pages.
 * With a thousand live calls, half of the memory was only needed while the calls were set up. Don't
 * call this if PGlite runs in one of the threads: it delayed commands by half a second, probably
 * because PGlite's large memory makes V8 collect constantly.
 */
export function boundHeapGrowth(): void {
  if (isGenerous()) setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/** V8 sizes its heaps by the memory of the machine or the container. */
export function isGenerous(): boolean {
  return getHeapStatistics().heap_size_limit >= generousFromBytes;
}
