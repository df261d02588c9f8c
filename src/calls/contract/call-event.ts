// What a call states, as it stands on JetStream: `<prefix>.call.<accountId>.<botId>.<callId>.<type>`. Past-tense and
// self-contained: a reader needs no other source to build a notification, a timeline row or the context. Ids derive from the
// call id, so that an event that is published again is recognised. Each feature defines its own events.

import { z } from 'zod';
import { detectionEvents } from '../detection/detection-contract.ts';
import { keyEvents } from '../keys/key-contract.ts';
import { endEvents, placingEvents } from '../life/call-contract.ts';
import { playbackEvents } from '../playback/playback-contract.ts';
import { streamEvents } from '../stream/stream-contract.ts';
import { transferEvents } from '../transfer/transfer-contract.ts';
import { type CallEventEnvelope, callEventEnvelope } from './definitions.ts';
import { type Immutable, type Mismatch, matching } from './schema.ts';

/** By type, in the order of the documents: the table of src/events/README.md. */
export const callEvents = {
  ...placingEvents,
  ...detectionEvents,
  ...keyEvents,
  ...streamEvents,
  ...playbackEvents,
  ...transferEvents,
  ...endEvents,
};

export type CallEventType = keyof typeof callEvents;
export const callEventTypes = Object.keys(callEvents) as readonly CallEventType[];

export type DataOf<Type extends CallEventType> = Immutable<
  z.infer<(typeof callEvents)[Type]['data']>
>;

export type EventOf<Type extends CallEventType> = CallEventEnvelope & {
  readonly type: Type;
  readonly data: DataOf<Type>;
};
export type CallEvent = { [Type in CallEventType]: EventOf<Type> }[CallEventType];
export type TerminalEvent = EventOf<'completed'> | EventOf<'failed'>;

/** What is published of a type: the message of JetStream, and `data` of a server-sent event. */
export function callEventSchema(type: CallEventType) {
  return z.object({
    ...callEventEnvelope.shape,
    type: z.literal(type),
    data: callEvents[type].data,
  });
}

/** Made once: a schema costs more to make than to hold a message against. */
const messages: ReadonlyMap<unknown, z.ZodType> = new Map(
  callEventTypes.map((type) => [
    type,
    z.object({ ...callEventEnvelope.shape, data: callEvents[type].data }),
  ]),
);

/** A message on the calls stream as far as it can be believed. */
export function parseCallEvent(
  text: string,
): { readonly ok: true; readonly event: CallEvent } | Mismatch {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'not JSON' };
  }
  const type = memberOf(value, 'type');
  const schema = messages.get(type);
  if (schema === undefined) return { ok: false, reason: unknownType(type) };
  const parsed = matching(schema, value);
  // The schema was chosen by the type that stands in it.
  return parsed.ok ? { ok: true, event: value as CallEvent } : parsed;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

/** One of a later version is told apart from rubbish: it is for another version to read. */
function unknownType(type: unknown): string {
  return typeof type === 'string'
    ? `unknown event type ${JSON.stringify(type.slice(0, 64))}`
    : 'an event without a type';
}

/** The last event of its call. */
export function isEnd({ type }: { readonly type: CallEventType }): boolean {
  return type === 'completed' || type === 'failed';
}

/** By sequence, except the end, which has one id, by whichever process it is stated (the call, or a recovery after a crash). */
export function callEventId(callId: string, type: CallEventType, eventSequence: number): string {
  const suffix = isEnd({ type }) ? 'end' : String(eventSequence);
  return `evt-${callId.replace(/^call-/, '')}-${suffix}`;
}

/** Undefined: not the id of an event. */
export function callIdOfEvent(eventId: string): string | undefined {
  const [, rest] = /^evt-(.+)-(?:end|\d+)$/.exec(eventId) ?? [];
  return rest === undefined ? undefined : `call-${rest}`;
}
