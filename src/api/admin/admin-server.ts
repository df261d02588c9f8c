// What the command line asks of a gateway that runs with the embedded database: PGlite is one session of one process, so
// that no other node can open it. Listens on loopback, for users who may read runtime.json: the key is made anew at each start.

import { createHash, timingSafeEqual } from 'node:crypto';
import fastify, { type FastifyInstance } from 'fastify';
import { ProblemError, problemBody, problemHeaders, toProblem } from '../../http/problem.ts';
import type { Logger } from '../../lib/logger.ts';
import { type AdminStores, runAdminOperation } from './admin-operations.ts';

export type AdminServerOptions = {
  readonly stores: AdminStores;
  readonly key: string;
  readonly logger: Logger;
};

export function createAdminServer({ stores, key, logger }: AdminServerOptions): FastifyInstance {
  const server = fastify({
    // An app with a thousand bots fits twice.
    bodyLimit: 256 * 1_024,
    // Its one client is a command on the same machine.
    requestTimeout: 5_000,
    handlerTimeout: 15_000,
    forceCloseConnections: 'idle',
  });
  server.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error);
    if (problem.status >= 500) logger.error({ err: problem.cause }, 'admin request failed');
    return reply
      .code(problem.status)
      .headers(problemHeaders(problem))
      .send(problemBody(problem, request.id));
  });
  server.addHook('onRequest', async (request) => {
    if (!isSame(request.headers.authorization ?? '', `Bearer ${key}`)) {
      throw new ProblemError('unauthorized', 'The key is another one.');
    }
  });
  server.post('/:operation', async (request) => {
    const { operation } = request.params as { operation: string };
    return await runAdminOperation(stores, operation, request.body);
  });
  return server;
}

/** Of hashes, so that neither length nor content shows in the time taken. */
function isSame(given: string, expected: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(expected));
}
