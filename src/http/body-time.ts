// Bounds how long a request's body may take to arrive. Node's own `requestTimeout` holds for all
// requests of a server, but an import may stream for as long as it makes progress. So this module
// times each body, and a route lifts the limit once it has authenticated its client.

import type { IncomingMessage, Server } from 'node:http';
import type { ClientFaults } from './client-faults.ts';

const timers = new WeakMap<IncomingMessage, NodeJS.Timeout>();

/** Rejects each body that has not arrived within `timeoutMs` of its headers. */
export function limitBodyTime(
  server: Pick<Server, 'on'>,
  timeoutMs: number,
  refuse: ClientFaults['refuse'],
): void {
  server.on('request', (request: IncomingMessage) => {
    const { headers, socket } = request;
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
      return;
    }
    const timer = setTimeout(() => {
      const error = new Error('the body did not arrive in time');
      refuse(Object.assign(error, { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
    }, timeoutMs);
    timers.set(request, timer);
    const clear = (): void => clearTimeout(timer);
    request.once('end', clear);
    request.once('close', clear);
  });
}

/** Lets the route itself bound the time of this body. */
export function liftBodyTime(request: IncomingMessage): void {
  clearTimeout(timers.get(request));
}
