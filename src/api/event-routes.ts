// Streams call events over HTTP as they are stored, for clients that don't connect to NATS.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type EventStreams, lastEventId } from '../http/event-stream.ts';
import { type ApiInstance, botRoute, type Clients } from '../http/http.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import type { EventScope } from '../live/event-log.ts';
import { appScopeOf } from './app-scope.ts';
import { callIdOf, requireFound } from './call-routes.ts';
import { botParams, callParams } from './call-schemas.ts';
import type { ApiServices } from './services.ts';

export type EventRoutesDependencies = {
  readonly services: Pick<ApiServices, 'bots' | 'calls' | 'live'>;
  readonly streams: EventStreams;
  readonly clients: Clients;
};

const stream = (description: string, problems: Parameters<typeof responses>[2]) => ({
  ...responses(description, z.string(), problems),
  200: { description, content: { 'text/event-stream': { schema: z.string() } } },
});

const cursorHeader = z.object({
  'last-event-id': z
    .string()
    .max(256)
    .optional()
    .describe('the last `id` you received: the stream continues after it without a gap'),
});

const contract =
  '`event` is the event’s type. `data` is its JSON as published on NATS, including the event’s id. `id` is the position in the stream: an `EventSource` sends it automatically when it reconnects. If the position is older than the stored events, the stream begins with a `reset` event; read `…/calls` to find out what you missed. An event may arrive twice, so drop duplicates by the id in `data`, or within one call by `eventSequence`. The gateway sends a comment every 15 s to keep the connection alive. An app may have 50 connections to each gateway. A client that stops reading is disconnected once 1 MiB is waiting for it.';

export function registerEventRoutes(server: ApiInstance, deps: EventRoutesDependencies): void {
  const { services, streams, clients } = deps;
  registerEventsOfApp(server, deps);
  const onRequest = clients.require({
    ...botRoute('Dialout'),
    contentTypes: ['text/event-stream'],
  });
  const follow = async (request: FastifyRequest, reply: FastifyReply, callId?: string) => {
    const { appId, accountId } = clients.appOf(request);
    const scope: EventScope = {
      accountId,
      botIds: [clients.botOf(request).botId],
      ...(callId === undefined ? {} : { callId }),
    };
    await streams.send(request, reply, appId, (options) =>
      services.live.follow(scope, lastEventId(request), options),
    );
    return reply;
  };

  server.route({
    method: 'GET',
    url: '/api/public/bot/:botId/events',
    onRequest,
    schema: {
      operationId: 'followEvents',
      summary: 'Follow the events of a bot’s calls as they happen',
      description: `Server-sent events, beginning now. ${contract}`,
      tags: ['calls'],
      params: botParams,
      headers: cursorHeader,
      response: stream('The stream, until one side closes it', [400, 401, 403, 404, 406, 429]),
      ...authenticated,
    },
    handler: (request, reply) => follow(request, reply),
  });

  server.route({
    method: 'GET',
    url: '/api/public/bot/:botId/calls/:callId/events',
    onRequest,
    schema: {
      operationId: 'followCall',
      summary: 'Follow one call’s events, starting with the first',
      description: `Server-sent events. A call’s last event is \`completed\` or \`failed\`. ${contract}`,
      tags: ['calls'],
      params: callParams,
      headers: cursorHeader,
      response: stream('The stream, until one side closes it', [400, 401, 403, 404, 406, 429]),
      ...authenticated,
    },
    handler: async (request, reply) => {
      const callId = callIdOf(request.params.callId);
      const { accountId } = clients.appOf(request);
      requireFound(
        await services.calls.details({ accountId, botId: clients.botOf(request).botId }, callId),
      );
      return await follow(request, reply, callId);
    },
  });
}

function registerEventsOfApp(
  server: ApiInstance,
  { services, streams, clients }: EventRoutesDependencies,
): void {
  server.route({
    method: 'GET',
    url: '/api/public/events',
    onRequest: clients.require({ scope: 'Dialout', contentTypes: ['text/event-stream'] }),
    schema: {
      operationId: 'followEventsOfApp',
      summary: 'Follow the events of all the app’s calls as they happen',
      description: `Server-sent events, beginning now. ${contract}`,
      tags: ['calls'],
      headers: cursorHeader,
      response: stream('The stream, until one side closes it', [400, 401, 403, 406, 429]),
      ...authenticated,
    },
    handler: async (request, reply) => {
      const scope = await appScopeOf(services.bots, clients.appOf(request));
      await streams.send(request, reply, clients.appOf(request).appId, (options) =>
        services.live.follow(scope, lastEventId(request), options),
      );
      return reply;
    },
  });
}
