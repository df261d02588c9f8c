// Bounds how long a client waits for its response. Fastify's `handlerTimeout` can't bound a request
// with a body: Node emits `close` on a request as soon as its body has been read, and Fastify then
// clears the time-out.

import { errorCodes } from 'fastify';
import type { ApiInstance } from './http.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Maximum time for a response of this route. Default: that of the server. */
    readonly responseTimeoutMs?: number;
  }
}

/**
 * Fails a request with FST_ERR_HANDLER_TIMEOUT if its response isn't complete in time. The time
 * begins with the request's headers. If the response has begun, we cut the connection, because the
 * status can't change any more. Responses that a route writes itself, such as event streams, have
 * no bound.
 */
export function answerInTime(server: ApiInstance, defaultTimeoutMs: number): void {
  server.addHook('onRequest', (request, reply, done) => {
    const { url, config } = request.routeOptions;
    const timeoutMs = config.responseTimeoutMs ?? defaultTimeoutMs;
    const timer = setTimeout(() => {
      if (reply.sent) return;
      const error = new errorCodes.FST_ERR_HANDLER_TIMEOUT(timeoutMs, url);
      if (reply.raw.headersSent) reply.raw.destroy(error);
      else void reply.send(error);
    }, timeoutMs);
    reply.raw.once('close', () => clearTimeout(timer));
    done();
  });
}
