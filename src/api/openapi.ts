// Serves /openapi.json: an OpenAPI 3.1 document, generated from the zod schemas that check requests
// and serialise responses.

import swagger from '@fastify/swagger';
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
} from 'fastify-type-provider-zod';
import { z } from 'zod';
import { exampleEvent } from '../calls/contract/event-examples.ts';
import { notificationOf } from '../calls/contract/event-table.ts';
import {
  notificationSchema as contract,
  eventNotificationSchema as eventContract,
} from '../calls/contract/notification.ts';
import { amdEvidence } from '../calls/detection/amd-event.ts';
import type { ApiInstance } from '../http/http.ts';
import { version } from '../version.ts';
import { registerAsyncApi } from './asyncapi.ts';

/** The bodies that notify URLs receive. */
export const notificationSchema = contract
  // Receivers must ignore fields that a later version adds.
  .extend({
    amd: z.looseObject(amdEvidence.shape).optional().describe('the evidence of an AMD event'),
  })
  .meta({
    id: 'CallNotification',
    examples: [
      {
        eventId: 'evt-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10-end',
        sequence: 1,
        timestamp: '2026-11-20T09:00:02.120Z',
        callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
        sid: 'sid-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
        botId: 'st-1b2c3d',
        conversationId: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
        status: 'Failed',
        reason: '486 Busy Here',
        reasonCode: 'Busy here',
        ringDurationInMS: 0,
        connectDurationInMS: 0,
        callDisconnectTime: '2026-11-20T09:00:02.120Z',
        outcome: 'busy',
        sipStatus: 486,
      },
    ],
  });

export const eventNotificationSchema = eventContract.meta({
  id: 'CallEventNotification',
  description: '/asyncapi.json describes the `data` of each `type`.',
  examples: [notificationOf(exampleEvent('dtmf', { notificationSequence: 2 }))],
});

export type OpenApiOptions = { readonly publicUrl: string | undefined };

const tags = [
  { name: 'calls', description: 'Place, follow, command and end calls' },
  { name: 'sounds', description: 'Sounds that calls play' },
  { name: 'rules', description: 'Who may be called, when, and how often' },
  { name: 'connections', description: 'Connections to language-model providers' },
  { name: 'imports', description: 'Configuration of a contact center' },
  { name: 'test-runs', description: 'Progress and results of batch tests' },
  { name: 'tables', description: 'Rows of data tables' },
  { name: 'history', description: 'Messages between bot and user' },
  { name: 'conversations', description: 'Conversation sessions of a contact center' },
  { name: 'twilio', description: "Requests of programs that use Twilio's libraries" },
];

const securitySchemes = {
  auth: {
    type: 'apiKey',
    in: 'header',
    name: 'auth',
    description:
      'A registered app’s JWT, signed with the algorithm and a key that the app registered. Claims: `appId` and `exp` (required), `iat` (optional, in the past), `nbf`, and `aud` (optional: `offhook` or the public URL). The operator limits a token’s lifetime, usually to a day; it counts from `iat` to `exp`, or from now if there is no `iat`. Clocks may differ by 30 s. Base64url must be canonical, without padding. A `Bearer ` prefix is accepted. After too many failures, an address gets 429 responses, but good tokens are still accepted. On the gateway’s machine, `npx offhook token` prints a token for the `dev` app that is valid for an hour, and `npx offhook token --app ID` prints one for another app.',
  },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description:
      'A registered app’s API key. After too many failures, an address gets 429 responses, but good keys are still accepted. The `dev` app’s key is `apiKey` in `.offhook/dev-app.json` on the gateway’s machine. `npx offhook apps create` and `npx offhook apps rotate ID api-key` print a new key once.',
  },
  streamSecret: {
    type: 'http',
    scheme: 'basic',
    description:
      'Basic authentication, as with Twilio: the user is the `accountSid` (`AC…`), and the password is the app’s `streamSecret`, which `npx offhook apps create` prints. The `dev` app’s secret is in `.offhook/dev-app.json`.',
  },
} as const;

/**
 * Adds the examples of schemas that transform their input. zod omits these examples, although they
 * describe the input.
 */
const zodToJsonConfig: NonNullable<
  Parameters<typeof createJsonSchemaTransform>[0]['zodToJsonConfig']
> = {
  override: ({ zodSchema, jsonSchema }) => {
    const examples = z.globalRegistry.get(zodSchema)?.['examples'];
    if (Array.isArray(examples)) jsonSchema.examples = examples;
  },
};

export async function registerOpenApi(server: ApiInstance, options: OpenApiOptions): Promise<void> {
  const completeObject = createJsonSchemaTransformObject({ zodToJsonConfig });
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Offhook',
        version,
        description:
          'Places outbound phone calls and tells you who picked up. Also stores connections, imports, tables, test runs and conversation history.\n\nBodies are UTF-8 JSON. If a field occurs twice, the last value counts. Ids contain no control characters. If an address does not accept a method, you get a 405 with `Allow`. Responses must not be cached (`Cache-Control: no-store`).',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: options.publicUrl ?? '/' }],
      tags,
      components: { securitySchemes },
    },
    transform: createJsonSchemaTransform({ zodToJsonConfig }),
    transformObject: (document) => complete(completeObject(document)),
  });
  server.get('/openapi.json', { schema: { hide: true } }, () => server.swagger());
  registerAsyncApi(server, options);
}

type Node = { [name: string]: unknown };

/** Adds what route schemas can't express (headers, webhooks), and removes unused schemas. */
function complete<Document extends Node>(document: Document): Document {
  const whole = { ...document, webhooks: { ...webhooks(), ...ingestWebhooks(document) } };
  addHeaders(whole);
  relaxBodies(whole);
  describeObjectParameters(whole);
  return withoutUnusedSchemas(whole);
}

/** Marks the bodies of GETs as optional, because the generator marks every body as required. */
function relaxBodies(document: Node): void {
  for (const { get } of Object.values((document['paths'] ?? {}) as Record<string, Node>)) {
    const body = (get as Node | undefined)?.['requestBody'] as Node | undefined;
    if (body !== undefined) body['required'] = false;
  }
}

/** Parameters that are objects are written as `name[member]=value`. */
function describeObjectParameters(document: Node): void {
  for (const operation of operationsOf(document)) {
    for (const parameter of (operation['parameters'] ?? []) as Node[]) {
      const { type } = parameter['schema'] as Node;
      if (type === 'object') Object.assign(parameter, { style: 'deepObject', explode: true });
    }
  }
}

/**
 * Describes the messages that producers publish on NATS. They appear as webhooks in the document,
 * and each message's schema names its subject in `x-subject`.
 */
function ingestWebhooks(document: Node): Node {
  const components = (document['components'] ?? {}) as { schemas?: Record<string, Node> };
  return Object.fromEntries(
    Object.entries(components.schemas ?? {}).flatMap(([id, schema]) => {
      const subject = schema['x-subject'];
      if (typeof subject !== 'string' || !id.endsWith('Input')) return [];
      const name = id.replace(/Input$/, '');
      const post = {
        operationId: `publish${name}`,
        summary: `A message that is published on \`${subject}\``,
        security: [],
        description:
          'Not HTTP: a JetStream message with this body as its payload. Invalid messages go to a dead-letter subject, with the reason.',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: `#/components/schemas/${id}` } } },
        },
        responses: { default: { description: 'JetStream’s acknowledgement' } },
      };
      return [[name, { post }]];
    }),
  );
}

const deliveryDescription =
  'Delivered at least once, and in order within a call; drop duplicates by `eventId`. Respond with any 2xx to accept it. A 410 stops all notifications for the call. After any other response, the gateway keeps retrying for 24 hours, and then the notification becomes a dead letter. The headers from `notifyHeaders` are added.';

function webhooks(): Node {
  return {
    callNotification: webhook(notificationSchema, {
      operationId: 'callNotification',
      summary: 'A status notification, sent to the call’s notify URL',
      description: deliveryDescription,
    }),
    callEventNotification: webhook(eventNotificationSchema, {
      operationId: 'callEventNotification',
      summary: 'A notification of an event that the request selects in `notifyEvents`',
      description: `Sent to the same URL, numbered in the same \`sequence\`, and never after \`completed\` or \`Failed\`. ${deliveryDescription}`,
    }),
  };
}

function webhook(schema: z.ZodType, operation: Node): Node {
  const id = z.globalRegistry.get(schema)?.id ?? '';
  return {
    post: {
      ...operation,
      // Webhooks are authenticated by their signature, not by a token.
      security: [],
      parameters: [
        webhookHeader(
          'Gateway-Signature',
          '`t=<unix time>,v1=<hex>`: HMAC-SHA256 of the time, a dot and the raw body. The key is the webhook secret exactly as printed. There is one `v1` for each live secret',
        ),
        webhookHeader('webhook-id', 'Standard Webhooks: the `eventId`'),
        webhookHeader('webhook-timestamp', 'Standard Webhooks: unix time of this attempt'),
        webhookHeader('webhook-signature', 'Standard Webhooks: `v1,<base64>`'),
      ],
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: `#/components/schemas/${id}` } } },
      },
      responses: { '2XX': { description: 'Received' } },
    },
  };
}

function webhookHeader(name: string, description: string): Node {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } };
}

function addHeaders(document: Node): void {
  for (const operation of operationsOf(document)) {
    const answers = operation['responses'] as Record<string, Node>;
    for (const status of ['429', '503']) {
      if (answers[status] === undefined) continue;
      answers[status]['headers'] = {
        'Retry-After': { description: 'seconds', schema: { type: 'integer' } },
      };
    }
    const key = idempotencyKeys[String(operation['operationId'])];
    if (key !== undefined) addIdempotency(operation, key);
    if (operation['operationId'] === 'dialOut')
      answers['200'] = { ...answers['200'], headers: replayed };
  }
}

/** Describes the `Idempotency-Key` header for each operation. */
const idempotencyKeys: Readonly<Record<string, string>> = {
  dialOut:
    'identifies this request until 24 hours after the end of its call, within the app and bot',
  commandCall: 'has the same meaning as the `id` field',
};

function addIdempotency(operation: Node, description: string): void {
  operation['parameters'] = [
    ...((operation['parameters'] as readonly Node[] | undefined) ?? []),
    {
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description,
      schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
    },
  ];
}

const replayed = {
  'Idempotent-Replayed': {
    description: '`true` if the key was used before and this response repeats the first one',
    schema: { type: 'string', enum: ['true'] },
  },
};

function operationsOf(document: Node): readonly Node[] {
  const paths = Object.values((document['paths'] ?? {}) as Record<string, Node>);
  return paths.flatMap((path) => Object.values(path)) as readonly Node[];
}

/**
 * Removes unused schemas. The generator writes each registered schema twice, for input and for
 * output, but the document usually needs only one of them.
 */
function withoutUnusedSchemas<Document extends Node>(document: Document): Document {
  const components = (document['components'] ?? {}) as Node;
  const schemas = (components['schemas'] ?? {}) as Node;
  const used = new Set<string>();
  const visit = (value: unknown): void => {
    const text = JSON.stringify(value) ?? '';
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      visit(schemas[name]);
    }
  };
  visit({ ...document, components: undefined });
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return { ...document, components: { ...components, schemas: kept } };
}
