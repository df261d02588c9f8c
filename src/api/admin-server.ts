// What the command line asks of a gateway that runs with the embedded database: PGlite is one session of one process, so
// that nobody else can open it. Listens on loopback, for whoever may read runtime.json: the key is made anew at each start.

import { createHash, timingSafeEqual } from 'node:crypto';
import fastify from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Logger } from '../lib/logger.ts';
import { scopes } from '../store/app-directory.ts';
import type { AppStore } from '../store/apps.ts';
import type { ApiInstance } from './http.ts';
import { issueToken, longestTokenTtlS, signerOf, signsItself } from './issue-token.ts';
import { ProblemError, problemBody, problemHeaders, toProblem } from './problem.ts';
import { validatorCompiler } from './validation.ts';

export type AdminServerOptions = {
  readonly apps: AppStore;
  readonly key: string;
  readonly logger: Logger;
};

/** Account and bot ids are tokens of NATS subjects. */
const id = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, 'must be letters, digits, - and _');

const newApp = z.object({
  name: z.string().min(1).max(128),
  accountId: id,
  bots: z.union([z.tuple([z.literal('*')]), z.array(id).min(1).max(1_000)], {
    error: 'must be ids of letters, digits, - and _, or * alone',
  }),
  scopes: z.array(z.enum(scopes)),
});

export function createAdminServer({ apps, key, logger }: AdminServerOptions): ApiInstance {
  const server: ApiInstance = fastify({
    // An app with a thousand bots fits twice.
    bodyLimit: 256 * 1_024,
    // Its one client is a command on the same machine.
    requestTimeout: 5_000,
    handlerTimeout: 15_000,
    forceCloseConnections: 'idle',
  }).withTypeProvider<ZodTypeProvider>();
  server.setValidatorCompiler(validatorCompiler);
  server.setSerializerCompiler(serializerCompiler);
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

  server.get('/apps', async () => ({ apps: await apps.list() }));
  server.post('/apps', { schema: { body: newApp } }, async (request) => {
    return await apps.createApp(request.body);
  });
  server.post(
    '/apps/:appId/token',
    {
      schema: {
        params: z.object({ appId: z.string() }),
        body: z.object({ ttlS: z.number().int().min(1).max(longestTokenTtlS) }),
      },
    },
    async (request) => {
      const app = await apps.find(request.params.appId);
      if (app === undefined) throw new ProblemError('not-found', 'There is no such app.');
      const signer = signerOf(app);
      if (signer === undefined) throw new ProblemError('invalid-request', signsItself);
      return { token: await issueToken(signer, request.body.ttlS) };
    },
  );
  return server;
}

/** Of hashes, so that neither length nor content shows in the time taken. */
function isSame(given: string, expected: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(expected));
}
