// The types for the HTTP API's fastify server, and its routes' authentication hook.

import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { isId } from '../lib/ids.ts';
import type { App, Scope } from '../store/apps/app-directory.ts';
import type { Bot, BotDirectory } from '../store/apps/bot-directory.ts';
import { type Authenticated, type Authenticator, authorizeBot, authorizeScope } from './auth.ts';
import { createFailedAuthentications } from './failed-authentications.ts';
import { ProblemError } from './problem.ts';

export type ApiInstance = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression<RawServerDefault>,
  RawReplyDefaultExpression<RawServerDefault>,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What a route requires of its client. */
export type Access = {
  /**
   * Undefined if access doesn't depend on a scope but on something else, e.g. a data table's
   * grants.
   */
  readonly scope?: Scope;
  /**
   * With `jwt` we read the `auth` header, with `apiKey` the `x-api-key` header. The other header is
   * ignored. Default: `jwt`.
   */
  readonly scheme?: 'jwt' | 'apiKey';
  /**
   * Name of the path parameter that identifies the bot. Undefined if the path doesn't contain a
   * bot.
   */
  readonly botParameter?: string;
  /** Content type of a successful response. Default: JSON. Problems are always JSON. */
  readonly contentType?: 'text/event-stream';
};

/** Authenticates the clients of the API. */
export type Clients = {
  /** Returns a route's `onRequest` hook, which runs before any byte of the body is read. */
  readonly require: (access: Access) => (request: FastifyRequest) => Promise<void>;
  /** Returns the app that the hook authenticated. */
  readonly appOf: (request: FastifyRequest) => App;
  /** Returns the id of the key that verified the token, or undefined for an API key. */
  readonly keyIdOf: (request: FastifyRequest) => string | undefined;
  /** Returns the bot that the path names, either by its id or by its stream identifier. */
  readonly botOf: (request: FastifyRequest) => Bot;
};

/** Returns the requirements of a route below `/bot/:botId` that needs a scope. */
export function botRoute(scope: Scope): Access {
  return { scope, botParameter: 'botId' };
}

export function createClients(authenticate: Authenticator, bots: BotDirectory): Clients {
  const authenticated = new WeakMap<FastifyRequest, Authenticated & { readonly bot?: Bot }>();
  const clientOf = (request: FastifyRequest) => {
    const client = authenticated.get(request);
    if (client === undefined) throw new Error('the route has no authentication hook');
    return client;
  };
  const failures = createFailedAuthentications();
  const orSlowDown = (error: unknown, { ip }: FastifyRequest): unknown => {
    if (!(error instanceof ProblemError) || error.kind !== 'unauthorized') return error;
    const retryAfterS = failures.failed(ip);
    return retryAfterS === undefined ? error : tooManyFailures(retryAfterS);
  };
  return {
    require:
      ({ scheme = 'jwt', scope, botParameter = '', contentType = 'application/json' }) =>
      async (request) => {
        const client = await authenticate[scheme](request.headers, request.method).catch(
          (error: unknown) => {
            throw orSlowDown(error, request);
          },
        );
        const { app } = client;
        const name = (request.params as Record<string, string>)[botParameter];
        if (name === undefined) {
          authenticated.set(request, client);
        } else {
          // If the name isn't an id, we don't need a query, because the route itself rejects it
          // with a 400.
          const bot = authorizeBot(app, name, isId(name) ? await bots.find(name) : undefined);
          authenticated.set(request, { ...client, bot });
        }
        if (scope !== undefined) authorizeScope(app, scope);
        // This check comes last, so that a client without access doesn't learn anything about the
        // route.
        assertAccepts(request.headers.accept, contentType);
      },
    appOf: (request) => clientOf(request).app,
    keyIdOf: (request) => clientOf(request).keyId,
    botOf: (request) => {
      const { bot } = clientOf(request);
      if (bot === undefined) throw new Error('the route names no bot');
      return bot;
    },
  };
}

function tooManyFailures(retryAfterS: number): ProblemError {
  return new ProblemError(
    'too-many-requests',
    'Too many requests with bad credentials came from your address. Good credentials are still accepted.',
    { retryAfterS },
  );
}

/**
 * Implements the part of RFC 9110 section 12.5.1 that an API with one representation needs.
 *
 * @throws ProblemError if `Accept` excludes that representation
 */
function assertAccepts(accept: string | undefined, contentType: string): void {
  if (accept === undefined || accept.trim() === '') return;
  const quality = new Map(
    accept.split(',').map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return [type, q === undefined ? 1 : Number(q)] as const;
    }),
  );
  const wanted = [contentType, contentType.replace(/\/.*/, '/*'), '*/*']
    .map((type) => quality.get(type))
    .find((q) => q !== undefined);
  if (wanted === undefined || wanted === 0) {
    throw new ProblemError('not-acceptable', `The response is ${contentType}.`);
  }
}
