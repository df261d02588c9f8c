// Helpers that each feature uses to define its part of the contract: commands to a call, and events
// that a call emits.

import { z } from 'zod';
import { identifier } from '../../lib/ids.ts';
import { callTerms } from '../rules/call-terms.ts';
import { callIdentity } from './identity.ts';
import { type Immutable, instant, sequence } from './schema.ts';

/** A command's id. Its syntax is the same as for `Idempotency-Key`. */
export const commandId = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters')
  .describe(
    'identifies the command within its call, so that it may be repeated; over HTTP, the `Idempotency-Key` header does the same',
  );

/**
 * Builds a command's schema.
 *
 * @param members the command's own fields, in addition to `command` and `id`
 */
export function callCommand<Name extends string, Members extends z.ZodRawShape>(
  command: Name,
  members: Members,
) {
  return z.object({ command: z.literal(command), id: commandId.exactOptional(), ...members });
}

/** The fields of every event, except `type` and `data`. */
export const callEventEnvelope = z.object({
  ...callIdentity.shape,
  id: identifier,
  time: instant.describe('when it happened, not when it was published'),
  eventSequence: sequence.describe('1, 2, … over all events of the call'),
});
export type CallEventEnvelope = Immutable<z.infer<typeof callEventEnvelope>>;

/**
 * Adds the terms of the request, and `notificationSequence`, which is set if a notification will be
 * sent for the event. That requires a notify URL and one of these events: the answer, a subscribed
 * AMD event, an event selected by the request, or the end. The call assigns the number, so every
 * process builds the same body.
 */
function eventData<Shape extends z.ZodRawShape>(shape: Shape) {
  const notificationSequence = sequence
    .exactOptional()
    .describe('1, 2, … over the notifications of the call; absent if the event is not notified');
  return z.object({ ...shape, ...callTerms, notificationSequence });
}

type EventData<Shape extends z.ZodRawShape> = Immutable<
  z.infer<ReturnType<typeof eventData<Shape>>>
>;

type EventDefinition<Shape extends z.ZodRawShape> = {
  /** When the event is emitted. Shown in the API documents. */
  readonly when: string;
  /** The fields of `data`. Durations are in milliseconds, and instants are ISO 8601 in UTC. */
  readonly data: Shape;
  /** Returns the text of a timeline row. It comes after the time and the type. */
  line(data: EventData<Shape>): string;
  /**
   * Returns the text shown to people who watch live events. It never contains pressed digits or
   * speech.
   */
  watched(data: EventData<Shape>, envelope: CallEventEnvelope): string;
  /** Example data, shown in the API documents and sent by `offhook webhooks test`. */
  readonly example: EventData<Shape>;
};

export function callEvent<Shape extends z.ZodRawShape>({
  when,
  data,
  ...rest
}: EventDefinition<Shape>) {
  return { ...rest, data: eventData(data).describe(when) };
}

/** Formats a duration for people. */
export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
