// Loaded before the gateway's own code (node --import), in its main thread and in each worker thread: writes down which thread
// is which, for Node 20 gives them no names, and counts what the main thread says to SQL and to drachtio. Plain JavaScript, so
// that it goes into any build. A count costs an addition. The folder for both stands in the query of this module's URL.

import { readlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder') ?? '.';
const script = process.argv[1] ?? '';
const threadId = basename(readlinkSync('/proc/thread-self'));
writeFileSync(join(folder, `thread-${threadId}`), basename(script));

// Other programs that the gateway starts inherit this.
if (isMainThread && basename(script) === 'main.js') {
  const counts = { statements: 0, framesToDrachtio: 0, framesFromDrachtio: 0 };
  // The modules that the gateway will load, wherever its build lies.
  const require = createRequire(script);
  countCalls(require('pg').Client.prototype, 'query', () => {
    counts.statements += 1;
  });
  const protocol = require('drachtio-srf/lib/wire-protocol.js').prototype;
  countCalls(protocol, 'send', () => {
    counts.framesToDrachtio += 1;
  });
  countCalls(protocol, 'emit', (event) => {
    if (event === 'msg') counts.framesFromDrachtio += 1;
  });
  createServer((socket) => socket.end(JSON.stringify(counts)))
    .listen(join(folder, 'counts'))
    .unref();
}

function countCalls(prototype, name, count) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    count(...args);
    return Reflect.apply(original, this, args);
  };
}
