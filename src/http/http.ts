// The fastify types of this API, in one place.

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

/** What a route asks of its caller. */
export type Access = {
  /** Left out where a grant of another kind decides (data tables). */
  readonly scope?: Scope;
  /** Header `auth` with a JWT (also where this is left out), or header `x-api-key`. The other one counts for nothing. */
  readonly scheme?: 'jwt' | 'apiKey';
  /** Path parameter that names the bot; undefined where the path has none. */
  readonly botParameter?: string;
  /** Of what it answers with; left out: JSON. Problems are JSON all the same. */
  readonly answers?: 'text/event-stream';
};

/** Asks who calls, before a byte of the body is read. */
export type Caller = {
  /** `onRequest` hook of a route. */
  readonly require: (access: Access) => (request: FastifyRequest) => Promise<void>;
  /** The app of a request that passed the hook. */
  readonly of: (request: FastifyRequest) => App;
  /** The key that verified its token; undefined where it showed something else. */
  readonly keyIdOf: (request: FastifyRequest) => string | undefined;
  /** The bot of its path, by its own id whichever name was used. */
  readonly botOf: (request: FastifyRequest) => Bot;
};

/** A route below `/bot/:botId` that a scope guards. */
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
          // What is no id is a 400 of the route's own; the database need not see it.
          const bot = authorizeBot(app, name, isId(name) ? await bots.find(name) : undefined);
          callers.set(request, { ...authenticated, bot });
        }
        if (scope !== undefined) authorizeScope(app, scope);
        // Last: whoever may not ask learns nothing of what is there, nor in which form.
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
    'Too many requests with bad credentials came from your address. Good ones are taken all the same.',
    { retryAfterS },
  );
}

/** RFC 9110 section 12.5.1, as far as an API with one representation needs it: is this one excluded? */
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
