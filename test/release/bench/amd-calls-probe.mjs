// Runs before the gateway's own code (node --import), in its main thread and in each worker thread.
// Records the script of each thread, because Node 20 does not name its threads. Counts the SQL
// statements of the main thread and its frames to and from drachtio. A count costs one addition.
// This is plain JavaScript, so that it works with any build. The query of this module's URL names
// the folder for both.

import { readlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder') ?? '.';
const script = process.argv[1] ?? '';
const threadId = basename(readlinkSync('/proc/thread-self'));
writeFileSync(join(folder, `thread-${threadId}`), basename(script));

// Other programs that the gateway starts inherit the option, but they are not measured.
if (isMainThread && basename(script) === 'main.js') {
  const counts = { statements: 0, framesToDrachtio: 0, framesFromDrachtio: 0 };
  // Resolves the modules that the gateway loads, wherever its build is.
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
