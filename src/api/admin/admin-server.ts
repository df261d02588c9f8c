// Runs the command line's operations inside a gateway with the embedded database. No other process
// can open that database, because PGlite allows a single session in a single process. The server
// listens on loopback. It generates a new key each time it starts and writes the key to
// runtime.json, so only users who can read that file have access.

import { createHash, timingSafeEqual } from 'node:crypto';
import fastify, { type FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { createClientFaults } from '../../http/client-faults.ts';
import { closeInTime } from '../../http/closing.ts';
import type { ApiInstance } from '../../http/http.ts';
import { parseJsonBody } from '../../http/json-body.ts';
import { answerProblem, ProblemError, toProblem } from '../../http/problem.ts';
import { answerInTime } from '../../http/response-time.ts';
import type { Logger } from '../../lib/logger.ts';
import { type AdminStores, runAdminOperation } from './admin-operations.ts';

export type AdminServerOptions = {
  readonly stores: AdminStores;
  readonly key: string;
  readonly logger: Logger;
};

export function createAdminServer({ stores, key, logger }: AdminServerOptions): ApiInstance {
  const faults = createClientFaults(logger);
  const server: ApiInstance = fastify({
    // An app with a thousand bots needs half of this.
    bodyLimit: 256 * 1_024,
    // The only client is a command on the same machine.
    requestTimeout: 5_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: faults.refuse,
  }).withTypeProvider<ZodTypeProvider>();
  server.removeAllContentTypeParsers();
  server.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    async (_request: FastifyRequest, body: Buffer) => parseJsonBody(body),
  );
  answerInTime(server, 15_000);
  closeInTime(server);
  faults.watch(server);
  server.setErrorHandler((error, request, reply) => {
    const problem = faults.problemFor(request, error) ?? toProblem(error);
    if (problem.status >= 500)
      logger.error({ err: problem.cause ?? problem }, 'admin request failed');
    return answerProblem(problem, request, reply);
  });
  server.addHook('onRequest', async (request) => {
    if (!isSame(request.headers.authorization ?? '', `Bearer ${key}`)) {
      throw new ProblemError('unauthorized', 'The key is wrong: read it anew from runtime.json.');
    }
  });
  server.post('/:operation', async (request) => {
    const { operation } = request.params as { operation: string };
    return await runAdminOperation(stores, operation, request.body);
  });
  return server;
}

/** Compares hashes, because the timing of a plain comparison would reveal length and content. */
function isSame(given: string, expected: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(expected));
}
