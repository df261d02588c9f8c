// Runs before the gateway's own code (node --import), in its main thread and in each worker thread.
// Records the script of each thread, because Node 20 does not name its threads. Counts the SQL
// statements of the main thread and its frames to and from drachtio. A count costs one addition.
// Takes a CPU profile of each thread when the bench asks for it; until then this costs nothing. It
// is plain JavaScript, so that it works with any build. The query of this module's URL names the
// folder for all of them.

import { readlinkSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder') ?? '.';
const script = process.argv[1] ?? '';
const threadId = basename(readlinkSync('/proc/thread-self'));
writeFileSync(join(folder, `thread-${threadId}`), basename(script));
if (script.endsWith('.js')) serveProfiles(join(folder, `profile-${threadId}`));

// Other programs that the gateway starts inherit the option, but they are not measured.
if (isMainThread && basename(script) === 'main.js') {
  const counts = { statements: {}, framesToDrachtio: 0, framesFromDrachtio: 0 };
  // Resolves the modules that the gateway loads, wherever its build is.
  const require = createRequire(script);
  countCalls(require('pg').Client.prototype, 'query', (query) => {
    const text = typeof query === 'string' ? query : (query?.name ?? query?.text ?? '');
    const name = text.trim().slice(0, 60).replaceAll(/\s+/g, ' ');
    counts.statements[name] = (counts.statements[name] ?? 0) + 1;
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

/**
 * Each connection takes one profile: from its begin until the other end closes its half. V8 takes a
 * sample every millisecond, also while the thread waits.
 */
function serveProfiles(path) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const session = new Session();
    session.connect();
    session.post('Profiler.enable');
    session.post('Profiler.start', () => socket.write('started\n'));
    socket.resume();
    socket.once('end', () => {
      session.post('Profiler.stop', (error, result) => {
        session.disconnect();
        if (error !== null) throw new Error('the profiler failed', { cause: error });
        // The samples one by one are of no use here, and they are the larger part.
        const { nodes, startTime, endTime } = result.profile;
        socket.end(JSON.stringify({ nodes, startTime, endTime }));
      });
    });
  });
  server.listen(path).unref();
}

function countCalls(prototype, name, count) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    count(...args);
    return Reflect.apply(original, this, args);
  };
}
