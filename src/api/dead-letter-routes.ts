// Lists and replays dead letters, i.e. notifications that the gateway gave up on. All queries are
// limited to the client's account and bot. If a notification belongs to another account, the client
// gets a 404, as if there were no such notification.

import type { z } from 'zod';
import { type ApiInstance, botRoute, type Clients } from '../http/http.ts';
import { badCursor, ProblemError } from '../http/problem.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import type { DeadLetterSelection, DeadLetters } from '../notifier/dead-letters.ts';
import { botScopeOf } from './app-scope.ts';
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
  readonly clients: Clients;
};

const prefix = '/api/public/bot/:botId/notifications';

export function registerDeadLetters(server: ApiInstance, deps: DeadLetterDependencies): void {
  const { deadLetters } = deps.services;
  server.route({
    method: 'GET',
    url: prefix,
    onRequest: deps.clients.require(botRoute('Dialout')),
    schema: {
      operationId: 'listDeadLetters',
      summary: 'List a bot’s dead letters: notifications that the gateway gave up on',
      description:
        'Notifications that the receiver did not accept within 24 hours, that it rejected with 410, or that the gateway may not send. They are kept as long as their calls. To list all of a call’s notifications, use `…/calls/{callId}/notifications`.',
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
    handler: (request) =>
      listDeadLetters(deadLetters, botScopeOf(deps.clients, request), request.query),
  });
  registerReplays(server, deps);
}

function registerReplays(server: ApiInstance, deps: DeadLetterDependencies): void {
  const { deadLetters } = deps.services;
  const onRequest = deps.clients.require(botRoute('Dialout'));

  server.route({
    method: 'POST',
    url: `${prefix}/:eventId/replay`,
    onRequest,
    schema: {
      operationId: 'replayNotification',
      summary: 'Send a dead letter again',
      description:
        'Sends the notification with its original event id and body, and a new signature. The 24 hours start over. You can repeat the request: a notification that has been delivered, or is still waiting to be sent, is not changed. The request needs no body.',
      tags: ['calls'],
      params: notificationParams,
      response: responses(
        'The notification will be sent again, or needs no replay',
        replayedSchema,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { appId } = deps.clients.appOf(request);
      const { eventId } = request.params;
      const replayed = await deadLetters.replayOne(
        botScopeOf(deps.clients, request),
        appId,
        eventId,
      );
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
      summary: 'Send the dead letters of a call or a period again',
      description:
        'Notifications for one call are sent in order. One request replays at most 500 dead letters, oldest failures first.',
      tags: ['calls'],
      params: botParams,
      body: replaySelectionSchema,
      response: responses(
        'How many dead letters will be sent again',
        replayResultSchema,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { appId } = deps.clients.appOf(request);
      const selection = toSelection(request.body);
      const { count, more } = await deadLetters.replay(
        botScopeOf(deps.clients, request),
        appId,
        selection,
      );
      return { replayed: count, more };
    },
  });
}

/** @throws ProblemError if the cursor isn't a page's `nextCursor` */
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
