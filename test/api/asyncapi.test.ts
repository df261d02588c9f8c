// The AsyncAPI document: it matches the schema of its specification, and it has a valid example of
// each event.

import specs from '@asyncapi/specs';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  type CallEvent,
  callEventTypes,
  parseCallEvent,
} from '../../src/calls/contract/call-event.ts';
import { commandReply, commandSchema } from '../../src/calls/contract/command.ts';
import { exampleEvent, exampleIdentity } from '../../src/calls/contract/event-examples.ts';
import { notificationOf, statusRows } from '../../src/calls/contract/event-table.ts';
import {
  eventNotificationSchema,
  notificationSchema,
} from '../../src/calls/contract/notification.ts';
import { selectedEventTypes } from '../../src/calls/contract/notify-events.ts';
import { parsePublishedEvent } from '../../src/calls/contract/published-event.ts';
import { forSuite } from '../support/opened.ts';
import { startHarness } from './support.ts';

type Message = {
  readonly name: string;
  readonly summary?: string;
  readonly payload: object;
  readonly examples: readonly {
    readonly name: string;
    readonly payload: unknown;
    readonly headers?: { readonly 'Nats-Msg-Id': string };
  }[];
};
type Document = {
  readonly asyncapi: string;
  readonly channels: Readonly<Record<string, { readonly messages: object }>>;
  readonly components: { readonly messages: Readonly<Record<string, Message>> };
};

let document: Document;
const harness = forSuite(startHarness);
beforeAll(async () => {
  document = (await harness.server.inject('/asyncapi.json')).json();
});

const isEvent = (name: string) => (callEventTypes as readonly string[]).includes(name);
const eventMessages = () =>
  Object.values(document.components.messages).filter(({ name }) => isEvent(name));
function parsed({ payload, headers }: Message['examples'][number]) {
  const text = JSON.stringify(payload);
  return headers === undefined
    ? parseCallEvent(text)
    : parsePublishedEvent(text, headers['Nats-Msg-Id'], exampleIdentity);
}
const payloadsOf = (key: string) =>
  (document.components.messages[key]?.examples ?? []).map(({ payload }) => payload);

/** The specification's schema contains the JSON Schema meta-schema, which Ajv already has. */
const options = { strict: false, allErrors: true, meta: false, validateSchema: false } as const;

function validatorOf(schema: object): ValidateFunction {
  const ajv = new Ajv(options);
  addFormats.default(ajv);
  return ajv.compile(schema);
}

/** Finds a schema by its place in the document, so that its references can be resolved. */
function validatorOfPayload(key: string): ValidateFunction {
  const ajv = new Ajv(options);
  addFormats.default(ajv);
  ajv.addSchema(document, 'document');
  return ajv.compile({ $ref: `document#/components/messages/${key}/payload` });
}

describe('/asyncapi.json', () => {
  test('is valid AsyncAPI 3.0', () => {
    const { $schema: _meta, ...schema } = specs.schemas['3.0.0'] as object & { $schema?: string };
    const validate = validatorOf(schema);
    validate(document);

    expect(validate.errors ?? []).toEqual([]);
    expect(validate({ ...document, channels: { wrong: { address: 5 } } })).toBe(false);
  });

  test('has a target for every reference', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)];
    expect(references.length).toBeGreaterThan(callEventTypes.length);
    for (const [, path = ''] of references) {
      const target = path
        .split('/')
        .reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], document);
      expect(target, path).toBeDefined();
    }
  });

  test('has a message for each type of event, on NATS and over HTTP', () => {
    const twice = [...callEventTypes, ...callEventTypes];
    expect(eventMessages().map(({ name }) => name)).toEqual(twice);
    for (const channel of ['callEvents', 'botEvents']) {
      expect(Object.keys(document.channels[channel]?.messages ?? {})).toHaveLength(
        callEventTypes.length,
      );
    }
  });

  test('names the conversation in every event, on NATS, too', () => {
    for (const { name, examples } of eventMessages()) {
      for (const { payload } of examples)
        expect(payload, name).toMatchObject({ conversationId: exampleIdentity.conversationId });
    }
  });

  test('has an example of each message, which matches its schema', () => {
    for (const [key, { name, examples }] of Object.entries(document.components.messages)) {
      const validate = validatorOfPayload(key);
      expect(examples.length, name).toBeGreaterThan(0);
      for (const example of examples) {
        validate(example.payload);
        expect(validate.errors ?? [], `${name}: ${example.name}`).toEqual([]);
      }
    }
  });

  test('has schemas that refuse invalid messages', () => {
    for (const [key, { examples, name }] of Object.entries(document.components.messages)) {
      if (!isEvent(name)) continue;
      const validate = validatorOfPayload(key);
      const [example] = examples;
      expect(validate({ ...(example?.payload as object), type: 'another' }), name).toBe(false);
      expect(validate({ ...(example?.payload as object), eventSequence: 0 }), name).toBe(false);
    }
  });

  test('has examples that the gateway itself accepts', () => {
    for (const example of eventMessages().flatMap(({ examples }) => examples)) {
      const { type } = example.payload as CallEvent;
      expect(parsed(example)).toEqual({ ok: true, event: exampleEvent(type) });
    }
    for (const body of payloadsOf('notification')) notificationSchema.strict().parse(body);
    for (const body of payloadsOf('eventNotification')) {
      eventNotificationSchema.strict().parse(body);
    }
    for (const command of payloadsOf('command')) commandSchema.parse(command);
    for (const reply of payloadsOf('commandReply')) commandReply.parse(reply);
  });

  test('has an example of a notification of every status', () => {
    const statuses = Object.values(statusRows).map(({ status }) => status);
    const examples = document.components.messages['notification']?.examples ?? [];

    expect(examples.map(({ name }) => name)).toEqual(statuses);
  });

  test('has an example of the notification of every event that can be selected', () => {
    const { examples = [] } = document.components.messages['eventNotification'] ?? {};

    expect(examples.map(({ name }) => name)).toEqual(selectedEventTypes);
  });

  test('distinguishes the data of event types in notifications', () => {
    const validate = validatorOfPayload('eventNotification');
    const body = notificationOf(exampleEvent('dtmf', { notificationSequence: 2 }));
    const event = exampleEvent('ringing', { notificationSequence: 2 });

    expect(validate(body)).toBe(true);
    expect(validate({ ...body, event: { ...event, type: 'dtmf' } })).toBe(false);
    expect(validate({ ...body, event: exampleEvent('completed') })).toBe(false);
  });
});
