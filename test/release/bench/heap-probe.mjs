// Loaded before the gateway's own code (node --import), in its main thread and in each worker thread: says what is alive in the
// thread's heap, after a collection. Plain JavaScript, so that it goes into any build. The folder of the sockets stands in the query
// of this module's URL.

import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread, threadId } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder') ?? '.';

// Other programs that the gateway starts inherit this.
if (!isMainThread || basename(process.argv[1] ?? '') === 'main.js') {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  createServer((socket) => {
    // What the first one finalises, the second one frees.
    collect();
    collect();
    const { heapUsed, external } = process.memoryUsage();
    socket.end(JSON.stringify(heapUsed + external));
  })
    .listen(join(folder, `heap-${threadId}`))
    .unref();
}
