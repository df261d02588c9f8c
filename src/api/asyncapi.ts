// Serves /asyncapi.json. The AsyncAPI 3.0 document describes the events that the gateway sends over
// NATS and HTTP, the notifications, and the commands that the gateway accepts. We generate it from
// the contract's schemas, so new event types show up without further work.

import { z } from 'zod';
import {
  type CallEventType,
  callEventSchema,
  callEvents,
  callEventTypes,
} from '../calls/contract/call-event.ts';
import { commandReply, commandSchema } from '../calls/contract/command.ts';
import { exampleEvent } from '../calls/contract/event-examples.ts';
import { notificationOf, statusRows } from '../calls/contract/event-table.ts';
import { eventNotificationSchema, notificationSchema } from '../calls/contract/notification.ts';
import { selectedEventTypes, typesWithStatus } from '../calls/contract/notify-events.ts';
import { publishedEvent, publishedEventSchema } from '../calls/contract/published-event.ts';
import type { ApiInstance } from '../http/http.ts';
import { version } from '../version.ts';

type Node = { readonly [name: string]: unknown };

const ref = (path: string): Node => ({ $ref: `#/${path}` });

/**
 * Returns a message's JSON schema for readers, who must ignore fields that a later version adds.
 * References to named schemas point to `components`.
 */
function schemaOf(schema: z.ZodType): Node {
  const { $schema, definitions, ...rest } = toJsonSchema(schema);
  return rest;
}

function namedSchemasOf(schema: z.ZodType): Node {
  return (toJsonSchema(schema)['definitions'] ?? {}) as Node;
}

function toJsonSchema(schema: z.ZodType): Node {
  const text = JSON.stringify(z.toJSONSchema(schema, { target: 'draft-7', io: 'input' }));
  return JSON.parse(text.replaceAll('"#/definitions/', '"#/components/schemas/')) as Node;
}

/** Turns an event type into the name of a component: `stream-started` → `streamStarted`. */
const camel = (type: string): string =>
  type.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Returns the name of the component for an event's message on NATS. */
const published = (type: CallEventType): string => camel(`published-${type}`);

const messageId: Node = {
  type: 'object',
  required: ['Nats-Msg-Id'],
  properties: { 'Nats-Msg-Id': { type: 'string', description: 'the `id` of the event' } },
};

const common = (type: CallEventType): Node => ({
  ...{ name: type, title: type, summary: callEvents[type].data.description ?? type },
  contentType: 'application/json',
});

/** Events as they are sent over HTTP. */
function eventMessages(): Node {
  return Object.fromEntries(
    callEventTypes.map((type) => [
      camel(type),
      {
        ...common(type),
        payload: schemaOf(callEventSchema(type)),
        examples: [{ name: type, payload: exampleEvent(type) }],
      },
    ]),
  );
}

function publishedMessages(): Node {
  return Object.fromEntries(
    callEventTypes.map((type) => {
      const event = exampleEvent(type);
      const headers = { 'Nats-Msg-Id': event.id };
      return [
        published(type),
        {
          ...common(type),
          headers: messageId,
          payload: schemaOf(publishedEventSchema(type)),
          examples: [{ name: type, headers, payload: publishedEvent(event) }],
        },
      ];
    }),
  );
}

/** Returns one example for each of the four statuses. */
function notificationExamples(): readonly Node[] {
  return typesWithStatus.map((type) => ({
    name: statusRows[type].status,
    payload: notificationOf(exampleEvent(type)) ?? {},
  }));
}

/**
 * Returns the payload schema for notifications of selected events, in which `event` has the schema
 * of one of the existing event messages.
 */
function eventNotificationPayload(): Node {
  const { properties, ...schema } = schemaOf(eventNotificationSchema);
  const { event, ...rest } = properties as { readonly [name: string]: Node };
  const oneOf = selectedEventTypes.map((type) => ref(`components/messages/${camel(type)}/payload`));
  return {
    ...schema,
    properties: { ...rest, event: { description: event?.['description'], oneOf } },
  };
}

function eventNotificationExamples(): readonly Node[] {
  return selectedEventTypes.map((type) => ({
    name: type,
    payload: notificationOf(exampleEvent(type, { notificationSequence: 2 })) ?? {},
  }));
}

const notificationMessages = ['notification', 'eventNotification'];

const signature: Node = {
  type: 'object',
  required: ['Gateway-Signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature'],
  properties: {
    'Gateway-Signature': {
      type: 'string',
      description:
        '`t=<unix time>,v1=<hex>`: HMAC-SHA256 of the time, a dot and the raw body. The key is the webhook secret exactly as printed. There is one `v1` for each live secret',
    },
    'webhook-id': { type: 'string', description: 'Standard Webhooks: the `eventId`' },
    'webhook-timestamp': { type: 'string', description: 'unix time of this attempt' },
    'webhook-signature': { type: 'string', description: 'Standard Webhooks: `v1,<base64>`' },
  },
};

function otherMessages(): Node {
  const json = { contentType: 'application/json' };
  return {
    notification: {
      ...json,
      name: 'notification',
      summary: 'A signed status notification, sent to the call’s notify URL',
      headers: signature,
      payload: schemaOf(notificationSchema),
      examples: notificationExamples(),
    },
    eventNotification: {
      ...json,
      name: 'eventNotification',
      summary: 'A signed notification of an event that the request selects in `notifyEvents`',
      headers: signature,
      payload: eventNotificationPayload(),
      examples: eventNotificationExamples(),
    },
    command: {
      ...json,
      name: 'command',
      payload: schemaOf(commandSchema),
      examples: [{ name: 'hangup', payload: { command: 'hangup' } }],
    },
    commandReply: {
      ...json,
      name: 'commandReply',
      payload: schemaOf(commandReply),
      examples: [{ name: 'done', payload: { ok: true, state: 'ending' } }],
    },
  };
}

const parameter = (description: string, more: Node = {}): Node => ({ description, ...more });
const callId = parameter('`call-<uuid>`');
const botId = parameter('id of the bot for which the call was placed');
const prefix = parameter('the gateway’s NATS_PREFIX', { default: 'offhook' });

const messagesOf = (names: readonly string[]): Node =>
  Object.fromEntries(names.map((name) => [name, ref(`components/messages/${name}`)]));

function channels(events: readonly string[]): Node {
  return {
    callEvents: {
      address: '{prefix}.call.{accountId}.{botId}.{callId}.{event}',
      title: 'Call events on NATS',
      description:
        'The JetStream stream `<prefix>_calls` holds each call’s events in the order of `eventSequence`. Drop duplicates by the header `Nats-Msg-Id`, which is the event’s id. A message does not repeat the account, the bot and the call of its subject; `sid`, `conversationId` and `appId` are in a call’s first and last message. Only the gateway’s operators should have access, because a client that can read this stream sees the events of every account.',
      servers: [ref('servers/nats')],
      parameters: {
        prefix,
        accountId: parameter('account of the call'),
        botId,
        callId,
        event: parameter('type of the event', { enum: callEventTypes }),
      },
      messages: messagesOf(callEventTypes.map(published)),
    },
    botEvents: {
      address: '/api/public/bot/{botId}/events',
      title: 'Events of a bot’s calls over HTTP',
      description:
        'Server-sent events: `event` is the type, `data` the message, and `id` an opaque cursor. Send `Last-Event-ID` to resume the stream after that cursor. `/openapi.json` describes the operation and its errors.',
      servers: [ref('servers/http')],
      parameters: { botId },
      messages: messagesOf(events),
    },
    notifications: {
      address: null,
      title: 'A call’s `notifyurl`',
      description:
        'Notifications are delivered at least once, and in order within a call. Order them by `sequence`, and drop duplicates by `eventId`.',
      messages: messagesOf(notificationMessages),
    },
    commands: {
      address: '{prefix}.command.{callId}',
      title: 'Commands to a call on NATS',
      servers: [ref('servers/nats')],
      parameters: { prefix, callId },
      messages: messagesOf(['command', 'commandReply']),
    },
  };
}

const inChannel = (channel: string, names: readonly string[]): readonly Node[] =>
  names.map((name) => ref(`channels/${channel}/messages/${name}`));

function operations(events: readonly string[]): Node {
  const send = (channel: string, names: readonly string[], summary: string): Node => ({
    action: 'send',
    channel: ref(`channels/${channel}`),
    summary,
    messages: inChannel(channel, names),
  });
  return {
    publishCallEvent: send(
      'callEvents',
      callEventTypes.map(published),
      'Publishes each call event once it has been stored',
    ),
    streamCallEvent: send(
      'botEvents',
      events,
      'Streams the events over HTTP to the account’s apps',
    ),
    sendNotification: send(
      'notifications',
      notificationMessages,
      'POSTs a notification to the notify URL',
    ),
    takeCommand: {
      action: 'receive',
      channel: ref('channels/commands'),
      summary: 'Receives a bot’s command during its call, with NATS request and reply',
      messages: inChannel('commands', ['command']),
      reply: {
        messages: inChannel('commands', ['commandReply']),
        channel: ref('channels/commands'),
      },
    },
  };
}

export function asyncApiDocument(publicUrl: string | undefined): Node {
  const events = callEventTypes.map(camel);
  const url = new URL(publicUrl ?? 'http://127.0.0.1:3000');
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Offhook',
      version,
      description:
        'The events and notifications that Offhook sends about calls, and the commands that it accepts during calls. Later versions may add fields, values and event types; ignore any that you don’t know.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    servers: {
      nats: { host: '127.0.0.1:4222', protocol: 'nats', description: 'the gateway’s NATS_URL' },
      http: { host: url.host, protocol: url.protocol.replace(':', '') },
    },
    channels: channels(events),
    operations: operations(events),
    components: {
      messages: { ...eventMessages(), ...publishedMessages(), ...otherMessages() },
      schemas: namedSchemasOf(
        z.tuple([
          notificationSchema,
          commandSchema,
          commandReply,
          z.union(callEventTypes.map(callEventSchema)),
        ]),
      ),
    },
  };
}

export function registerAsyncApi(
  server: ApiInstance,
  { publicUrl }: { readonly publicUrl: string | undefined },
): void {
  let document: Node | undefined;
  server.get('/asyncapi.json', { schema: { hide: true } }, () => {
    // The document's inputs never change, so we generate it only once, when it's first requested.
    document ??= asyncApiDocument(publicUrl);
    return document;
  });
}
