// Helpers with which each feature defines its part of the contract: commands to a call, and events
// that a call emits.

import { z } from 'zod';
import { identifier } from '../../lib/ids.ts';
import { callIdentity } from './identity.ts';
import { type Immutable, instant, sequence } from './schema.ts';

/** The id of a command, with the syntax of an `Idempotency-Key`. */
export const commandId = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters')
  .describe(
    'identifies the command within its call, so that it may be repeated; over HTTP the header `Idempotency-Key` does the same',
  );

/**
 * Makes the schema of a command.
 *
 * @param members the members in addition to the name and the id
 */
export function callCommand<Name extends string, Members extends z.ZodRawShape>(
  command: Name,
  members: Members,
) {
  return z.object({ command: z.literal(command), id: commandId.exactOptional(), ...members });
}

/** The members of every event except `type` and `data`. */
export const callEventEnvelope = z.object({
  ...callIdentity.shape,
  id: identifier,
  time: instant.describe('when it happened, not when it was published'),
  eventSequence: sequence.describe('1, 2, … over all events of the call'),
});
export type CallEventEnvelope = Immutable<z.infer<typeof callEventEnvelope>>;

/**
 * Adds `notificationSequence`, which is set if the event is notified. That requires a notify URL
 * and one of these events: the answer, a subscribed AMD event, an event that the request selects,
 * or the end. The call assigns the number, so the body does not depend on which process builds it.
 */
function eventData<Shape extends z.ZodRawShape>(shape: Shape) {
  const notificationSequence = sequence
    .exactOptional()
    .describe('1, 2, … over the notifications of the call; absent if the event is not notified');
  return z.object({ ...shape, notificationSequence });
}

type EventData<Shape extends z.ZodRawShape> = Immutable<
  z.infer<ReturnType<typeof eventData<Shape>>>
>;

type EventDefinition<Shape extends z.ZodRawShape> = {
  /** When the event is emitted. The API documents show this text. */
  readonly when: string;
  /** The members of the data. Durations are in milliseconds, instants are ISO 8601 in UTC. */
  readonly data: Shape;
  /** Returns the text of a timeline row, which follows the time and the type. */
  line(data: EventData<Shape>): string;
  /**
   * Returns the text for people who watch live events. It contains no pressed digits and no speech.
   */
  watched(data: EventData<Shape>, envelope: CallEventEnvelope): string;
  /** Example data. The API documents show it, and `offhook webhooks test` sends it. */
  readonly example: EventData<Shape>;
};

/** Defines an event. */
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
