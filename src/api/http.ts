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
import type { App, Scope } from '../store/app-directory.ts';
import { type Authenticator, authorize } from './auth.ts';
import { ProblemError } from './problem.ts';

export type ApiInstance = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression<RawServerDefault>,
  RawReplyDefaultExpression<RawServerDefault>,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** Asks who calls, before a byte of the body is read. */
export type Caller = {
  /** `onRequest` hook of routes below `/bot/:botId`. */
  readonly require: (scope: Scope) => (request: FastifyRequest) => Promise<void>;
  /** The app of a request that passed the hook. */
  readonly of: (request: FastifyRequest) => App;
};

export function createCaller(authenticate: Authenticator): Caller {
  const apps = new WeakMap<FastifyRequest, App>();
  return {
    require: (scope) => async (request) => {
      assertAcceptsJson(request.headers.accept);
      const app = await authenticate(request.headers['auth']);
      authorize(app, (request.params as { botId: string }).botId, scope);
      apps.set(request, app);
    },
    of: (request) => {
      const app = apps.get(request);
      if (app === undefined) throw new Error('the route has no authentication hook');
      return app;
    },
  };
}

/** RFC 9110 section 12.5.1, as far as an API with one representation needs it: is JSON excluded? */
function assertAcceptsJson(accept: string | undefined): void {
  if (accept === undefined || accept.trim() === '') return;
  const quality = new Map(
    accept.split(',').map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
      const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return [type, q === undefined ? 1 : Number(q)] as const;
    }),
  );
  const json = ['application/json', 'application/*', '*/*']
    .map((type) => quality.get(type))
    .find((q) => q !== undefined);
  if (json === undefined || json === 0) {
    throw new ProblemError('not-acceptable', 'The answer is application/json.');
  }
}
