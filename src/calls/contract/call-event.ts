// A call's events. `published-event.ts` defines their form on NATS. An event states a fact. Its
// readers can build a notification or a timeline row from it, and the call's context from its
// events so far. Event ids are derived from the call id, which lets readers recognise
// duplicates. Each feature defines its own events.

import { z } from 'zod';
import { abandonmentEvents } from '../abandonment/abandonment-contract.ts';
import { detectionEvents } from '../detection/detection-contract.ts';
import { keyEvents } from '../keys/key-contract.ts';
import { endEvents, placingEvents } from '../life/call-contract.ts';
import { optOutEvents } from '../opt-out/opt-out-contract.ts';
import { playbackEvents } from '../playback/playback-contract.ts';
import { recordingEvents } from '../recording/recording-contract.ts';
import { streamEvents } from '../stream/stream-contract.ts';
import { transferEvents } from '../transfer/transfer-contract.ts';
import { type CallEventEnvelope, callEventEnvelope } from './definitions.ts';
import { type Immutable, type Mismatch, matching } from './schema.ts';

/** The events by type, in the order of the table in src/events/README.md. */
export const callEvents = {
  ...placingEvents,
  ...detectionEvents,
  ...abandonmentEvents,
  ...keyEvents,
  ...optOutEvents,
  ...streamEvents,
  ...playbackEvents,
  ...transferEvents,
  ...recordingEvents,
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
/** What an event says, without the fields of the envelope. */
export type CallFact = {
  [Type in CallEventType]: { readonly type: Type; readonly data: DataOf<Type> };
}[CallEventType];
export type TerminalEvent = EventOf<'completed'> | EventOf<'failed'>;

/** The schema of an event as the gateway stores it and sends it over HTTP. */
export function callEventSchema(type: CallEventType) {
  return z.object({
    ...callEventEnvelope.shape,
    type: z.literal(type),
    data: callEvents[type].data,
  });
}

/**
 * Schemas by type. We build each one once, because building a schema costs more than checking a
 * message.
 */
const messages: ReadonlyMap<unknown, z.ZodType> = new Map(
  callEventTypes.map((type) => [
    type,
    z.object({ ...callEventEnvelope.shape, data: callEvents[type].data }),
  ]),
);

/**
 * Parses an event. A message from the calls stream has to be validated, because anyone with publish
 * rights may have sent it.
 *
 * @param known the members that the text lacks
 */
export function parseCallEvent(
  text: string,
  known: Partial<CallEventEnvelope> = {},
): { readonly ok: true; readonly event: CallEvent } | Mismatch {
  let value: unknown;
  try {
    value = { ...(JSON.parse(text) as object), ...known };
  } catch {
    return { ok: false, reason: 'not JSON' };
  }
  const type = memberOf(value, 'type');
  const schema = messages.get(type);
  if (schema === undefined) return { ok: false, reason: unknownType(type) };
  const parsed = matching(schema, value);
  // We picked the schema by the message's type, so the cast is safe.
  return parsed.ok ? { ok: true, event: value as CallEvent } : parsed;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

/** Describes an event without a schema, e.g. one whose type was added by a later version. */
function unknownType(type: unknown): string {
  return typeof type === 'string'
    ? `unknown event type ${JSON.stringify(type.slice(0, 64))}`
    : 'an event without a type';
}

export function isEnd({ type }: { readonly type: CallEventType }): boolean {
  return type === 'completed' || type === 'failed';
}

/**
 * Returns an event's id, which contains the sequence number. The terminal event is an exception:
 * its id is the same whether the call's owner or crash recovery emits it.
 */
export function callEventId(callId: string, type: CallEventType, eventSequence: number): string {
  const suffix = isEnd({ type }) ? 'end' : String(eventSequence);
  return `evt-${callId.replace(/^call-/, '')}-${suffix}`;
}

/** @returns undefined if `eventId` is not the id of a call event */
export function callIdOfEvent(eventId: string): string | undefined {
  const [, rest] = /^evt-(.+)-(?:end|\d+)$/.exec(eventId) ?? [];
  return rest === undefined ? undefined : `call-${rest}`;
}
