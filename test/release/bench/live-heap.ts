// Measures the live heaps of a gateway's threads: JavaScript objects and buffers. This is the
// memory that the gateway needs. Its resident pages depend on when V8 last collected.

import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** Returns NODE_OPTIONS for a gateway that can be measured. Its threads listen in `folder`. */
export function heapProbe(folder: string): string {
  const url = new URL('./heap-probe.mjs', import.meta.url);
  url.searchParams.set('folder', folder);
  return `--import ${url.href}`;
}

/** Returns the total of all threads in bytes, after a collection in each. */
export async function liveHeapBytes(folder: string): Promise<number> {
  const sockets = (await readdir(folder)).filter((name) => name.startsWith('heap-'));
  const sizes = await Promise.all(
    sockets.map(async (name) => Number(await text(connect(join(folder, name))))),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
