// How an HTTP server ends, whatever its clients do. Node's own `close` waits for every connection that
// has a request, and stops to check their time-outs. One client that sends its body byte by byte, or
// never reads its answer, would keep the gateway alive for as long as it likes.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiInstance } from './http.ts';
import { answerProblem, dependencyRetryAfterS, ProblemError } from './problem.ts';

/** Answers that are under way take milliseconds, and event streams end by themselves. */
const defaultGraceMs = 500;

/**
 * Bounds `close` by the grace. At once it cuts connections that never had a request. During the grace,
 * requests under way get their answer, and new ones a 503 with `Connection: close`. Then it cuts every
 * connection that is left.
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
