// Calls and dead letters of every bot that the app may use: an overview, and the way from a call's id to its bot. What
// belongs to another account, or to a bot that the app may not use, is a 404 like what never was.

import type { FastifyRequest } from 'fastify';
import type { ApiInstance, Caller } from '../http/http.ts';
import { badCursor } from '../http/problem.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import { appScopeOf } from './app-scope.ts';
import { callIdOf, found, toFilter } from './call-routes.ts';
import { callDetailsSchema, callPageSchema, callParams, listQuery } from './call-schemas.ts';
import { listDeadLetters } from './dead-letter-routes.ts';
import { deadLetterPageSchema, deadLetterQuery } from './dead-letter-schemas.ts';
import type { ApiServices } from './services.ts';

export type AppWideDependencies = {
  readonly services: Pick<ApiServices, 'bots' | 'calls' | 'deadLetters'>;
  readonly caller: Caller;
};

export function registerAppWideRoutes(
  server: ApiInstance,
  { services, caller }: AppWideDependencies,
): void {
  const { bots, calls, deadLetters } = services;
  const onRequest = caller.require({ scope: 'Dialout' });
  const scopeOf = (request: FastifyRequest) => appScopeOf(bots, caller.of(request));

  server.route({
    method: 'GET',
    url: '/api/public/calls',
    onRequest,
    schema: {
      operationId: 'listCallsOfApp',
      summary: 'The interactions view: calls of every bot of the app, newest first',
      tags: ['calls'],
      querystring: listQuery,
      response: responses('A page of calls', callPageSchema, [400, 401, 403, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const page = await calls.list(await scopeOf(request), toFilter(request.query));
      if (page === 'bad-cursor') throw badCursor();
      return page;
    },
  });

  server.route({
    method: 'GET',
    url: '/api/public/calls/:callId',
    onRequest,
    schema: {
      operationId: 'getCallOfApp',
      summary: 'One call, whichever bot of the app it is of',
      description: '`botId` of the answer is what the operations of a bot are asked with.',
      tags: ['calls'],
      params: callParams.pick({ callId: true }),
      response: responses('The call', callDetailsSchema, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) =>
      found(await calls.details(await scopeOf(request), callIdOf(request.params.callId))),
  });

  server.route({
    method: 'GET',
    url: '/api/public/notifications',
    onRequest,
    schema: {
      operationId: 'listDeadLettersOfApp',
      summary: 'Dead letters: notifications of every bot of the app that were given up',
      description: 'As those of one bot, which each of them names.',
      tags: ['calls'],
      querystring: deadLetterQuery,
      response: responses('A page of dead letters', deadLetterPageSchema, [400, 401, 403, 406]),
      ...authenticated,
    },
    handler: async (request) =>
      await listDeadLetters(deadLetters, await scopeOf(request), request.query),
  });
}
