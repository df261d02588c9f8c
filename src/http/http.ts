// The fastify types of the HTTP API, and the authentication hook of its routes.

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
  /** Undefined if a grant of another kind decides (data tables). */
  readonly scope?: Scope;
  /**
   * `jwt`: header `auth` with a JWT. `apiKey`: header `x-api-key`. The other header is ignored.
   * Default: `jwt`.
   */
  readonly scheme?: 'jwt' | 'apiKey';
  /** Name of the path parameter that names the bot. Undefined if the path has no bot. */
  readonly botParameter?: string;
  /** Content type of a successful answer. Default: JSON. Problems are always JSON. */
  readonly answers?: 'text/event-stream';
};

/** Authenticates clients before any byte of the body is read. */
export type Caller = {
  /** Returns the `onRequest` hook of a route. */
  readonly require: (access: Access) => (request: FastifyRequest) => Promise<void>;
  /** Returns the app of a request that passed the hook. */
  readonly of: (request: FastifyRequest) => App;
  /**
   * Returns the id of the key that verified the token.
   *
   * @returns undefined if the client did not send a token
   */
  readonly keyIdOf: (request: FastifyRequest) => string | undefined;
  /** Returns the bot that the path names by its id or its stream identifier. */
  readonly botOf: (request: FastifyRequest) => Bot;
};

/** Access to a route below `/bot/:botId` that needs a scope. */
export function botRoute(scope: Scope): Access {
  return { scope, botParameter: 'botId' };
}

export function createCaller(authenticate: Authenticator, bots: BotDirectory): Caller {
  const callers = new WeakMap<FastifyRequest, Authenticated & { readonly bot?: Bot }>();
  const known = (request: FastifyRequest) => {
    const caller = callers.get(request);
    if (caller === undefined) throw new Error('the route has no authentication hook');
    return caller;
  };
  const failures = createFailedAuthentications();
  const orSlowDown = (error: unknown, { ip }: FastifyRequest): unknown => {
    if (!(error instanceof ProblemError) || error.kind !== 'unauthorized') return error;
    const retryAfterS = failures.failed(ip);
    return retryAfterS === undefined ? error : tooManyFailures(retryAfterS);
  };
  return {
    require:
      ({ scheme = 'jwt', scope, botParameter = '', answers = 'application/json' }) =>
      async (request) => {
        const authenticated = await authenticate[scheme](request.headers, request.method).catch(
          (error: unknown) => {
            throw orSlowDown(error, request);
          },
        );
        const { app } = authenticated;
        const name = (request.params as Record<string, string>)[botParameter];
        if (name === undefined) {
          callers.set(request, authenticated);
        } else {
          // The route answers 400 to a name that is not an id. The database need not see it.
          const bot = authorizeBot(app, name, isId(name) ? await bots.find(name) : undefined);
          callers.set(request, { ...authenticated, bot });
        }
        if (scope !== undefined) authorizeScope(app, scope);
        // Checked last: a client without access must not learn what exists, nor in which form.
        assertAccepts(request.headers.accept, answers);
      },
    of: (request) => known(request).app,
    keyIdOf: (request) => known(request).keyId,
    botOf: (request) => {
      const { bot } = known(request);
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
 * Implements RFC 9110 section 12.5.1 as far as an API with one representation needs it.
 *
 * @throws ProblemError if `Accept` excludes the representation
 */
function assertAccepts(accept: string | undefined, answers: string): void {
  if (accept === undefined || accept.trim() === '') return;
  const quality = new Map(
    accept.split(',').map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return [type, q === undefined ? 1 : Number(q)] as const;
    }),
  );
  const wanted = [answers, answers.replace(/\/.*/, '/*'), '*/*']
    .map((type) => quality.get(type))
    .find((q) => q !== undefined);
  if (wanted === undefined || wanted === 0) {
    throw new ProblemError('not-acceptable', `The answer is ${answers}.`);
  }
}
