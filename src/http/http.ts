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
  /**
   * Content types of a successful response, of which the route chooses one. Default: JSON. Problems
   * are always JSON.
   */
  readonly contentTypes?: readonly ContentType[];
};

export type ContentType =
  | 'application/json'
  | 'application/octet-stream'
  | 'application/x-ndjson'
  | 'audio/wav'
  | 'text/csv'
  | 'text/event-stream';

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
      ({ scheme = 'jwt', scope, botParameter = '', contentTypes = ['application/json'] }) =>
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
        if (acceptedType(request.headers.accept, contentTypes) === undefined) {
          const types = contentTypes.join(' or ');
          throw new ProblemError('not-acceptable', `The response is ${types}.`);
        }
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
 * Implements RFC 9110 section 12.5.1 for media types without parameters. Returns the type that the
 * client prefers, or the first of several that it likes equally.
 *
 * @returns undefined if `Accept` excludes all types
 */
export function acceptedType(
  accept: string | undefined,
  types: readonly ContentType[],
): ContentType | undefined {
  if (accept === undefined || accept.trim() === '') return types[0];
  const quality = new Map(
    accept.split(',').map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      const isNumber = q !== undefined && !Number.isNaN(Number(q));
      return [type, isNumber ? Number(q) : 1] as const;
    }),
  );
  const qualityOf = (type: ContentType): number =>
    [type, type.replace(/\/.*/, '/*'), '*/*']
      .map((range) => quality.get(range))
      .find((q) => q !== undefined) ?? 0;
  const [best] = types.toSorted((one, other) => qualityOf(other) - qualityOf(one));
  return best !== undefined && qualityOf(best) > 0 ? best : undefined;
}
