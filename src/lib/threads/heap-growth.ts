// Limits how much garbage may gather before V8 collects it.

import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/** Growth allowed above the size that was alive after the last collection. */
const percent = 60;
/**
 * From this heap limit on, V8 lets the heap grow generously. Below it (in a small container), V8
 * alone is more sparing than the setting here.
 */
const generousFromBytes = 2_000_000_000;

/**
 * Bounds the heap growth of all threads in this process, from their next collection on. By default
 * V8 waits until the heap is up to four times as large as its live part, and then keeps the pages.
 * Half of the memory of a thousand live calls was only needed while the calls were set up. Do not
 * call this if PGlite runs in one of the threads: it delayed commands by half a second, most likely
 * because PGlite's large memory makes V8 collect all the time.
 */
export function boundHeapGrowth(): void {
  if (isGenerous()) setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/** V8 sizes its heaps by the memory of the machine or the container. */
export function isGenerous(): boolean {
  return getHeapStatistics().heap_size_limit >= generousFromBytes;
}
