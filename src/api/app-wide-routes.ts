// Lists the dead letters of all bots that the app may use, and finds a call by its id alone. If
// a call belongs to another account, or to a bot that the app may not use, the client gets a
// 404, as if there were no such call.

import type { FastifyRequest } from 'fastify';
import type { ApiInstance, Clients } from '../http/http.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import { appScopeOf } from './app-scope.ts';
import { callIdOf, requireFound } from './call-routes.ts';
import { callDetailsSchema, callParams } from './call-schemas.ts';
import { listDeadLetters } from './dead-letter-routes.ts';
import { deadLetterPageSchema, deadLetterQuery } from './dead-letter-schemas.ts';
import type { ApiServices } from './services.ts';

export type AppWideDependencies = {
  readonly services: Pick<ApiServices, 'bots' | 'calls' | 'deadLetters'>;
  readonly clients: Clients;
};

export function registerAppWideRoutes(
  server: ApiInstance,
  { services, clients }: AppWideDependencies,
): void {
  const { bots, calls, deadLetters } = services;
  const onRequest = clients.require({ scope: 'Dialout' });
  const scopeOf = (request: FastifyRequest) => appScopeOf(bots, clients.appOf(request));

  server.route({
    method: 'GET',
    url: '/api/public/calls/:callId',
    onRequest,
    schema: {
      operationId: 'getCallOfApp',
      summary: 'Read one call, for any of the app’s bots',
      description: 'For operations with a bot in their path, use the `botId` from the response.',
      tags: ['calls'],
      params: callParams.pick({ callId: true }),
      response: responses('The call', callDetailsSchema, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) =>
      requireFound(await calls.details(await scopeOf(request), callIdOf(request.params.callId))),
  });

  server.route({
    method: 'GET',
    url: '/api/public/notifications',
    onRequest,
    schema: {
      operationId: 'listDeadLettersOfApp',
      summary:
        'List the dead letters of all the app’s bots: notifications that the gateway gave up on',
      description: 'Each dead letter names its bot.',
      tags: ['calls'],
      querystring: deadLetterQuery,
      response: responses('A page of dead letters', deadLetterPageSchema, [400, 401, 403, 406]),
      ...authenticated,
    },
    handler: async (request) =>
      await listDeadLetters(deadLetters, await scopeOf(request), request.query),
  });
}
