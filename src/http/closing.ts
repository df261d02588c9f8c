// Closes an HTTP server in bounded time, no matter what its clients do. Node's own `close` waits
// for every connection that has a request, and stops checking their time-outs. A single client
// could then keep the gateway alive forever by sending its body byte by byte, or by never reading
// the response.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiInstance } from './http.ts';
import { answerProblem, dependencyRetryAfterS, ProblemError } from './problem.ts';

/**
 * This is plenty: pending responses take milliseconds, and event streams end when the close begins.
 */
const defaultGraceMs = 500;

/**
 * Bounds `close` by a grace period. Connections that never had a request are cut first. During the
 * grace period, pending requests get their response, and new requests get a 503 with `Connection:
 * close`. Then the remaining connections are cut.
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
