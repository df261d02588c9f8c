// What is alive in the heaps of a gateway's threads, JavaScript's own and buffers: what it needs, unlike the pages that it holds, which depend
// on when V8 collected last.

import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** NODE_OPTIONS of a gateway that can be asked. `folder`: where its threads listen. */
export function heapProbe(folder: string): string {
  const url = new URL('./heap-probe.mjs', import.meta.url);
  url.searchParams.set('folder', folder);
  return `--import ${url.href}`;
}

/** All threads together, in bytes, after a collection in each. */
export async function liveHeapBytes(folder: string): Promise<number> {
  const sockets = (await readdir(folder)).filter((name) => name.startsWith('heap-'));
  const sizes = await Promise.all(
    sockets.map(async (name) => Number(await text(connect(join(folder, name))))),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
