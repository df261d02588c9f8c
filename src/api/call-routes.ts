// Reads and ends calls. All queries are limited to the client's account and bot. If a call belongs
// to another account, the client gets a 404, as if there were no such call.

import type { FastifyRequest } from 'fastify';
import type { CallId } from '../calls/contract/identity.ts';
import type { CommandRouting } from '../calls/dialout-ports.ts';
import { type ApiInstance, botRoute, type Clients } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import type { CallScope } from '../interactions/call-queries.ts';
import { botScopeOf } from './app-scope.ts';
import {
  callDetailsSchema,
  callEndSchema,
  callIdPattern,
  callParams,
  notificationLogSchema,
} from './call-schemas.ts';
import type { ApiServices } from './services.ts';

export type CallRoutesDependencies = {
  readonly services: Pick<ApiServices, 'calls' | 'commands'>;
  readonly clients: Clients;
};

const prefix = '/api/public/bot/:botId/calls';

export function registerCallRoutes(server: ApiInstance, deps: CallRoutesDependencies): void {
  const onRequest = deps.clients.require(botRoute('Dialout'));
  const { calls } = deps.services;
  const scopeOf: ScopeOf = (request) => botScopeOf(deps.clients, request);

  server.route({
    method: 'GET',
    url: `${prefix}/:callId`,
    onRequest,
    schema: {
      operationId: 'getCall',
      summary: 'Read one call: state, outcome, timeline',
      tags: ['calls'],
      params: callParams,
      response: responses('The call', callDetailsSchema, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) =>
      requireFound(await calls.details(scopeOf(request), callIdOf(request.params.callId))),
  });

  registerNotificationLog(server, deps, scopeOf);
  registerEnd(server, deps, scopeOf);
}

type ScopeOf = (request: FastifyRequest) => CallScope;

function registerNotificationLog(
  server: ApiInstance,
  { services: { calls }, clients }: CallRoutesDependencies,
  scopeOf: ScopeOf,
): void {
  const onRequest = clients.require(botRoute('Dialout'));

  server.route({
    method: 'GET',
    url: `${prefix}/:callId/notifications`,
    onRequest,
    schema: {
      operationId: 'listNotifications',
      summary: 'List a call’s notifications with every delivery attempt',
      tags: ['calls'],
      params: callParams,
      response: responses(
        'The notifications, ordered by `sequence`',
        notificationLogSchema,
        [400, 401, 403, 404, 406],
      ),
      ...authenticated,
    },
    handler: async (request) => ({
      notifications: requireFound(
        await calls.notifications(scopeOf(request), callIdOf(request.params.callId)),
      ),
    }),
  });
}

function registerEnd(
  server: ApiInstance,
  { services, clients }: CallRoutesDependencies,
  scopeOf: ScopeOf,
): void {
  server.route({
    method: 'DELETE',
    url: `${prefix}/:callId`,
    onRequest: clients.require(botRoute('Dialout')),
    schema: {
      operationId: 'endCall',
      summary: 'Cancel a call or hang it up',
      description:
        'Ends the call whatever its state: queued, ringing or answered. You can repeat the request. The end is notified like any other. The request needs no body; if you send one, it is not read, but its content type must be JSON.',
      tags: ['calls'],
      params: callParams,
      response: responses(
        'The call is ending, or had already ended',
        callEndSchema,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const callId = callIdOf(request.params.callId);
      const state = requireFound(await services.calls.state(scopeOf(request), callId));
      if (state === 'ended') return { callId, state: 'ended' as const };
      const result = await hangUp(services.commands, callId, clients.appOf(request).appId);
      if (result === undefined) throw callUnreachable();
      return { callId, state: result };
    },
  });
}

/** @returns undefined if the process that owns the call didn't respond */
export async function hangUp(
  commands: CommandRouting,
  callId: CallId,
  askedBy: string,
): Promise<'ending' | 'ended' | undefined> {
  const reply = await commands.run(callId, { command: 'hangup' }, askedBy);
  if (reply?.ok !== true) return undefined;
  return reply.state === 'ended' ? 'ended' : 'ending';
}

export function callIdOf(text: string): CallId {
  if (!callIdPattern.test(text)) throw noSuchCall();
  return text as CallId;
}

export function requireFound<Value>(value: Value | undefined): Value {
  if (value === undefined) throw noSuchCall();
  return value;
}

/**
 * The database has the call, but the process that owns it has died or isn't responding. If that
 * process has died, another one takes over its calls and ends them.
 */
function callUnreachable(): ProblemError {
  return new ProblemError('unavailable', 'The call cannot be reached at the moment.', {
    retryAfterS: 5,
  });
}

function noSuchCall(): ProblemError {
  return new ProblemError('not-found', 'There is no such call.');
}
