// How an HTTP server ends, whatever its clients do. Node's own `close` waits for every connection on which something was asked, and
// no longer looks for their time-outs: one client that sends its body byte by byte, or never reads its answer, would hold the
// gateway's end up for as long as it likes.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiInstance } from './http.ts';
import { answerProblem, dependencyRetryAfterS, ProblemError } from './problem.ts';

/** Answers that are under way take milliseconds, and event streams end by themselves. */
const defaultGraceMs = 500;

/**
 * Has `close` end within the grace. At once: connections on which nothing was asked. New requests on the others are refused with a
 * 503 and `Connection: close`, those under way are answered. After the grace: every connection that is left.
 */
export function closeInTime(
  server: ApiInstance,
  { graceMs = defaultGraceMs }: { readonly graceMs?: number } = {},
): void {
  const open = new Set<Socket>();
  const unused = new Set<Socket>();
  let isClosing = false;
  server.server.on('connection', (socket: Socket) => {
    for (const sockets of [open, unused]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
  });
  server.server.on('request', ({ socket }: IncomingMessage) => unused.delete(socket));
  // fastify says `Connection: close` by itself while it closes.
  server.addHook('onRequest', async (request, reply) =>
    isClosing ? answerProblem(shuttingDown(), request, reply) : undefined,
  );
  server.addHook('preClose', (done) => {
    isClosing = true;
    for (const socket of unused) socket.destroy();
    setTimeout(() => {
      for (const socket of open) socket.destroy();
    }, graceMs).unref();
    done();
  });
}

function shuttingDown(): ProblemError {
  return new ProblemError('unavailable', 'This gateway is shutting down.', {
    retryAfterS: dependencyRetryAfterS,
  });
}
