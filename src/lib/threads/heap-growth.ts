// How much garbage V8 lets gather before it looks for some.

import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/** Of what was alive after the last collection. */
const percent = 60;
/** From there on V8 is generous; below it (in a small container) it is more sparing by itself than anything here. */
const generousFromBytes = 2_000_000_000;

/**
 * By itself V8 waits until the heap is up to four times as large as what is alive in it, and then keeps the pages: of a thousand
 * live calls, half of the memory was what setting them up had needed. For all threads of this process, from their next
 * collection on. Not where PGlite runs in one: commands were heard half a second later there, most likely as its large memory
 * makes V8 collect all the time.
 */
export function boundHeapGrowth(): void {
  if (isGenerous()) setFlagsFromString(`--heap-growing-percent=${percent}`);
}

/** V8 sizes its heaps by the memory of the machine or the container. */
export function isGenerous(): boolean {
  return getHeapStatistics().heap_size_limit >= generousFromBytes;
}
