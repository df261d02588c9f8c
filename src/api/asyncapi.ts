// /asyncapi.json: AsyncAPI 3.0 of what the gateway sends without being asked (events, over NATS and over HTTP; notifications),
// and of the commands that it takes. From the schemas of the contract; a new type of event is in it by itself.

import { z } from 'zod';
import { callEventSchema, callEvents, callEventTypes } from '../calls/contract/call-event.ts';
import { commandReply, commandSchema } from '../calls/contract/command.ts';
import { exampleEvent } from '../calls/contract/event-examples.ts';
import { notificationOf, statusRows } from '../calls/contract/event-table.ts';
import { eventNotificationSchema, notificationSchema } from '../calls/contract/notification.ts';
import { selectedEventTypes, typesWithStatus } from '../calls/contract/notify-events.ts';
import type { ApiInstance } from '../http/http.ts';
import { version } from '../version.ts';

type Node = { readonly [name: string]: unknown };

const ref = (path: string): Node => ({ $ref: `#/${path}` });

/** As one who reads it needs it: members that a later version adds are passed over. Named schemas are those of `components`. */
function schemaOf(schema: z.ZodType): Node {
  const { $schema, definitions, ...rest } = whole(schema);
  return rest;
}

function namedSchemasOf(schema: z.ZodType): Node {
  return (whole(schema)['definitions'] ?? {}) as Node;
}

function whole(schema: z.ZodType): Node {
  const text = JSON.stringify(z.toJSONSchema(schema, { target: 'draft-7', io: 'input' }));
  return JSON.parse(text.replaceAll('"#/definitions/', '"#/components/schemas/')) as Node;
}

/** In words of subjects and components: `stream-started` → `streamStarted`. */
const camel = (type: string): string =>
  type.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

function eventMessages(): Node {
  return Object.fromEntries(
    callEventTypes.map((type) => [
      camel(type),
      {
        name: type,
        title: type,
        summary: callEvents[type].data.description ?? type,
        contentType: 'application/json',
        payload: schemaOf(callEventSchema(type)),
        examples: [{ name: type, payload: exampleEvent(type) }],
      },
    ]),
  );
}

/** One of each of the four statuses. */
function notificationExamples(): readonly Node[] {
  return typesWithStatus.map((type) => ({
    name: statusRows[type].status,
    payload: notificationOf(exampleEvent(type)) ?? {},
  }));
}

/** Refers to the messages of the events, because each type has its own data. */
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
        '`t=<unix time>,v1=<hex>`: HMAC-SHA256 of the time, a dot and the raw body, keyed with the webhook secret as it is written, one `v1` for each live secret',
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
      summary: 'What the notify URL of a call receives, signed',
      headers: signature,
      payload: schemaOf(notificationSchema),
      examples: notificationExamples(),
    },
    eventNotification: {
      ...json,
      name: 'eventNotification',
      summary: 'What it receives of each event that `notifyEvents` of the request selects, signed',
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
const botId = parameter('of the bot that the call is for');
const prefix = parameter('NATS_PREFIX of the gateway', { default: 'offhook' });

const messagesOf = (names: readonly string[]): Node =>
  Object.fromEntries(names.map((name) => [name, ref(`components/messages/${name}`)]));

function channels(events: readonly string[]): Node {
  return {
    callEvents: {
      address: '{prefix}.call.{accountId}.{botId}.{callId}.{event}',
      title: 'Events of calls on NATS',
      description:
        'In the JetStream stream `<prefix>_calls`, in the order of `eventSequence` for each call; drop repetitions by `id`. For those who run the gateway: who can read here reads every account.',
      servers: [ref('servers/nats')],
      parameters: {
        prefix,
        accountId: parameter('whose call it is'),
        botId,
        callId,
        event: parameter('its type', { enum: callEventTypes }),
      },
      messages: messagesOf(events),
    },
    botEvents: {
      address: '/api/public/bot/{botId}/events',
      title: 'Events of a bot’s calls over HTTP',
      description:
        'Server-sent events: the type as `event`, the message as `data`, an opaque cursor as `id`, resumable by `Last-Event-ID`. `/openapi.json` has the operation and its errors.',
      servers: [ref('servers/http')],
      parameters: { botId },
      messages: messagesOf(events),
    },
    notifications: {
      address: null,
      title: 'The `notifyurl` of a call',
      description:
        'At least once, and in order within a call; order by `sequence`, drop repetitions by `eventId`.',
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
    publishCallEvent: send('callEvents', events, 'Each step of a call, after it was stored'),
    streamCallEvent: send('botEvents', events, 'The same over HTTP, to apps of the account'),
    sendNotification: send('notifications', notificationMessages, 'POSTs to the notify URL'),
    takeCommand: {
      action: 'receive',
      channel: ref('channels/commands'),
      summary: 'A request of a bot while its call is up; NATS request and reply',
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
        'What Offhook says of calls without being asked, and what it can be told while they are up. Later versions may add members, words and types of event: pass over what you do not know.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    servers: {
      nats: { host: '127.0.0.1:4222', protocol: 'nats', description: 'NATS_URL of the gateway' },
      http: { host: url.host, protocol: url.protocol.replace(':', '') },
    },
    channels: channels(events),
    operations: operations(events),
    components: {
      messages: { ...eventMessages(), ...otherMessages() },
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
    // Made when it is asked for, once: it depends on nothing that changes.
    document ??= asyncApiDocument(publicUrl);
    return document;
  });
}
