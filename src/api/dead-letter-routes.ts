// Notifications that were given up: listing them, and having them sent again. Within the caller's account and bot, so that
// what belongs to another account is a 404 like what never was.

import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { type ApiInstance, botRoute, type Caller } from '../http/http.ts';
import { badCursor, ProblemError } from '../http/problem.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import type {
  DeadLetterScope,
  DeadLetterSelection,
  DeadLetters,
} from '../notifier/dead-letters.ts';
import { botParams } from './call-schemas.ts';
import {
  deadLetterPageSchema,
  deadLetterQuery,
  notificationParams,
  replayedSchema,
  replayResultSchema,
  replaySelectionSchema,
} from './dead-letter-schemas.ts';
import type { ApiServices } from './services.ts';

export type DeadLetterDependencies = {
  readonly services: Pick<ApiServices, 'deadLetters'>;
  readonly caller: Caller;
};

const prefix = '/api/public/bot/:botId/notifications';

export function registerDeadLetters(server: ApiInstance, deps: DeadLetterDependencies): void {
  const { deadLetters } = deps.services;
  server.route({
    method: 'GET',
    url: prefix,
    onRequest: deps.caller.require(botRoute('Dialout')),
    schema: {
      operationId: 'listDeadLetters',
      summary: 'Dead letters: notifications of a bot that were given up',
      description:
        'Those that the receiver did not accept within 24 hours, that it refused with 410, or that may not be sent. Kept as long as their calls. The other notifications of a call are found with the call.',
      tags: ['calls'],
      params: botParams,
      querystring: deadLetterQuery,
      response: responses(
        'A page of dead letters',
        deadLetterPageSchema,
        [400, 401, 403, 404, 406],
      ),
      ...authenticated,
    },
    handler: (request) => listDeadLetters(deadLetters, scopeOf(deps, request), request.query),
  });
  registerReplays(server, deps);
}

function registerReplays(server: ApiInstance, deps: DeadLetterDependencies): void {
  const { deadLetters } = deps.services;
  const onRequest = deps.caller.require(botRoute('Dialout'));

  server.route({
    method: 'POST',
    url: `${prefix}/:eventId/replay`,
    onRequest,
    schema: {
      operationId: 'replayNotification',
      summary: 'Send a dead letter again',
      description:
        'With the event id and the body it had, signed afresh; the 24 hours begin anew. May be repeated: what is delivered, or on its way, is left as it is. A body is not needed.',
      tags: ['calls'],
      params: notificationParams,
      response: responses(
        'The notification is owed again, or needs no replay',
        replayedSchema,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { appId } = deps.caller.of(request);
      const { eventId } = request.params;
      const replayed = await deadLetters.replayOne(scopeOf(deps, request), appId, eventId);
      if (replayed !== undefined) return replayed;
      throw new ProblemError('not-found', 'There is no such notification.');
    },
  });

  server.route({
    method: 'POST',
    url: `${prefix}/replay`,
    onRequest,
    schema: {
      operationId: 'replayNotifications',
      summary: 'Send the dead letters of a call, or of a time, again',
      description:
        'Those of one call leave in their order. At most 500 in one request, those given up first before the others.',
      tags: ['calls'],
      params: botParams,
      body: replaySelectionSchema,
      response: responses(
        'What is owed again',
        replayResultSchema,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { appId } = deps.caller.of(request);
      const selection = toSelection(request.body);
      const { count, more } = await deadLetters.replay(scopeOf(deps, request), appId, selection);
      return { replayed: count, more };
    },
  });
}

function scopeOf({ caller }: DeadLetterDependencies, request: FastifyRequest): DeadLetterScope {
  return { accountId: caller.of(request).accountId, botId: caller.botOf(request).botId };
}

/** @throws ProblemError if no page gave the cursor. */
export async function listDeadLetters(
  deadLetters: Pick<DeadLetters, 'list'>,
  scope: Parameters<DeadLetters['list']>[0],
  { limit, cursor, failure, ...selection }: z.output<typeof deadLetterQuery>,
): Promise<z.output<typeof deadLetterPageSchema>> {
  const page = await deadLetters.list(scope, {
    limit,
    ...(cursor === undefined ? {} : { cursor }),
    ...(failure === undefined ? {} : { failure }),
    ...toSelection(selection),
  });
  if (page === 'bad-cursor') throw badCursor();
  const { deadLetters: notifications, ...rest } = page;
  return { notifications, ...rest };
}

type Given = {
  readonly callId?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

function toSelection({ callId, from, to }: Given): DeadLetterSelection {
  return {
    ...(callId === undefined ? {} : { callId }),
    ...(from === undefined ? {} : { failedFrom: new Date(from) }),
    ...(to === undefined ? {} : { failedTo: new Date(to) }),
  };
}
