// Runs before the gateway's own code (node --import), in its main thread and in each worker thread.
// Reports the live heap of the thread after a collection. This is plain JavaScript, so that it
// works with any build. The query of this module's URL names the folder of the sockets.

import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread, threadId } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder') ?? '.';

// Other programs that the gateway starts inherit the option, but they are not measured.
if (!isMainThread || basename(process.argv[1] ?? '') === 'main.js') {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  createServer((socket) => {
    // The second collection frees the objects that the first one finalised.
    collect();
    collect();
    const { heapUsed, external } = process.memoryUsage();
    socket.end(JSON.stringify(heapUsed + external));
  })
    .listen(join(folder, `heap-${threadId}`))
    .unref();
}
