// Closes an HTTP server in bounded time, no matter what its clients do. Node's own `close` waits
// for every connection with a pending request, but stops checking the connections' time-outs. A
// single client could then keep the gateway alive forever by sending its body byte by byte, or by
// never reading the response.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiInstance } from './http.ts';
import { answerProblem, dependencyRetryAfterS, ProblemError } from './problem.ts';

/**
 * 500 ms is plenty, because pending responses take milliseconds, and event streams end as soon as
 * the server starts to close.
 */
const defaultGraceMs = 500;

/**
 * Limits `close` to a grace period. Connections that have never had a request are cut immediately.
 * During the grace period, pending requests get their responses, and new requests get a 503 with
 * `Connection: close`. Any connections that remain after that are cut.
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
  // Fastify adds `Connection: close` while it is closing.
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
