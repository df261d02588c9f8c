// Serves a call's context to bot flows that poll, either immediately or once the context changes.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { CallContext } from '../calls/contract/call-context.ts';
import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import { changesContext, contextOf } from '../calls/contract/event-table.ts';
import type { CallId } from '../calls/contract/identity.ts';
import { type ApiInstance, botRoute } from '../http/http.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import type { CallScope } from '../interactions/call-queries.ts';
import { callIdOf, requireFound } from './call-routes.ts';
import { callContextSchema, callParams } from './call-schemas.ts';
import type { EventRoutesDependencies } from './event-routes.ts';
import type { ApiServices } from './services.ts';

const maxWaitS = 30;

/**
 * Maximum time until the response. It covers the maximum wait plus the reads before and after the
 * wait, each of which may take as long as any other request. Proxies need longer time-outs than
 * this: most use 60 s, and .docker/haproxy.cfg uses 50 s.
 *
 * @internal
 */
export const maxResponseMs = maxWaitS * 1_000 + 15_000;

const contextQuery = z.strictObject({
  wait: z
    .string()
    .regex(/^\d{1,2}s$/, `must be 0s to ${maxWaitS}s`)
    .transform((text) => Number.parseInt(text, 10) * 1_000)
    .refine((waitMs) => waitMs <= maxWaitS * 1_000, `must be 0s to ${maxWaitS}s`)
    .optional()
    .describe(`how long to wait for something new, e.g. \`${maxWaitS}s\``),
});

export function registerContext(
  server: ApiInstance,
  { services, streams, clients }: EventRoutesDependencies,
): void {
  server.route({
    method: 'GET',
    url: '/api/public/bot/:botId/calls/:callId/context',
    onRequest: clients.require(botRoute('Dialout')),
    config: { responseTimeoutMs: maxResponseMs },
    schema: {
      operationId: 'getCallContext',
      summary: 'Read a call’s context: AMD events, metadata',
      description:
        'With `wait`, the gateway responds when there is something new, or after that time. If the `If-None-Match` header repeats the `ETag` of an earlier response, the gateway waits for a changed context; otherwise it waits for the first detection event. If the call has ended, it responds immediately. A waiting request occupies one of the app’s 50 event connections.',
      tags: ['calls'],
      params: callParams,
      querystring: contextQuery,
      headers: z.object({ 'if-none-match': z.string().max(256).optional() }),
      response: responses('The current context', callContextSchema, [400, 401, 403, 404, 406, 429]),
      ...authenticated,
    },
    handler: async (request, reply) => {
      const { appId, accountId } = clients.appOf(request);
      const scope = { accountId, botId: clients.botOf(request).botId };
      const callId = callIdOf(request.params.callId);
      const known = request.headers['if-none-match'];
      const wanted: Wanted = { scope, callId, isNew: (context) => isNew(context, known) };
      const waitMs = request.query.wait ?? 0;
      let context = requireFound(await services.calls.context(scope, callId));
      if (waitMs > 0 && !wanted.isNew(context)) {
        const { closing } = streams;
        const signal = AbortSignal.any([AbortSignal.timeout(waitMs), closing, request.signal]);
        await streams.within(appId, async () => {
          context = (await waitForNew(services, wanted, context.metadata, signal)) ?? context;
        });
      }
      void reply.header('etag', etagFor(context));
      return context;
    },
  });
}

type Wanted = {
  readonly scope: CallScope;
  readonly callId: CallId;
  readonly isNew: (context: CallContext) => boolean;
};

/** Waits for a new context, the end of the call or the signal. Then returns the current context. */
async function waitForNew(
  { calls, live }: Pick<ApiServices, 'calls' | 'live'>,
  { scope, callId, isNew }: Wanted,
  metadata: CallContext['metadata'],
  signal: AbortSignal,
): Promise<CallContext | undefined> {
  const events = { accountId: scope.accountId, botIds: [scope.botId], callId };
  const options = { signal, onTooSlow: () => undefined };
  // Without a cursor, the call's first event comes first.
  const known: CallEvent[] = [];
  for await (const chunks of live.follow(events, undefined, options)) {
    const added = chunks.flatMap(({ event = [] }) => event);
    if (!added.some((event) => changesContext(event.type) || isEnd(event))) continue;
    known.push(...added);
    const context = contextOf(metadata, known);
    if (added.some(isEnd) || isNew(context)) return context;
  }
  return await calls.context(scope, callId);
}

function isNew(context: CallContext, known: string | undefined): boolean {
  return known === undefined
    ? context.session.UserSession.amd.length > 0
    : etagFor(context) !== known.replace(/^W\//, '');
}

/**
 * Returns a context's ETag. The ETag must not depend on the order of fields, because the database
 * orders them differently than a live event.
 */
function etagFor({ session, metadata }: CallContext): string {
  const text = JSON.stringify({ session, metadata }, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
}
