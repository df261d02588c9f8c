// How a feature defines its part of the contract: the commands that a call takes, and the events that it states.

import { z } from 'zod';
import { identifier } from '../../lib/ids.ts';
import { callIdentity } from './identity.ts';
import { type Immutable, instant, sequence } from './schema.ts';

/** As an `Idempotency-Key`. */
export const commandId = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters')
  .describe(
    'names the command within its call, so that it may be repeated; over HTTP the header `Idempotency-Key` says the same',
  );

/** @param members beside the name and the id */
export function callCommand<Name extends string, Members extends z.ZodRawShape>(
  command: Name,
  members: Members,
) {
  return z.object({ command: z.literal(command), id: commandId.exactOptional(), ...members });
}

/** What every event has beside its `type` and `data`. */
export const callEventEnvelope = z.object({
  ...callIdentity.shape,
  id: identifier,
  time: instant.describe('when it happened, not when it was published'),
  eventSequence: sequence.describe('1, 2, … over all events of the call'),
});
export type CallEventEnvelope = Immutable<z.infer<typeof callEventEnvelope>>;

/**
 * Adds `notificationSequence`, which is set if the call has a notify URL and the event is notified:
 * an answer, a subscribed AMD event, an event that the request selects, the end. The call gives the
 * number, so that the body never depends on who builds it.
 */
function eventData<Shape extends z.ZodRawShape>(shape: Shape) {
  const notificationSequence = sequence
    .exactOptional()
    .describe('1, 2, … over the notifications of the call; absent where the event is not notified');
  return z.object({ ...shape, notificationSequence });
}

type EventData<Shape extends z.ZodRawShape> = Immutable<
  z.infer<ReturnType<typeof eventData<Shape>>>
>;

type EventDefinition<Shape extends z.ZodRawShape> = {
  /** When it is stated. */
  readonly when: string;
  /** Durations in milliseconds, instants ISO 8601 UTC. */
  readonly data: Shape;
  /** For people who ask for their call, after the time and the type. */
  line(data: EventData<Shape>): string;
  /** For people who watch the gateway: no digits, nothing that was said. */
  watched(data: EventData<Shape>, envelope: CallEventEnvelope): string;
  /** What the event says of a made-up call. The documents show it, and `offhook webhooks test` sends it. */
  readonly example: EventData<Shape>;
};

/** One that lacks a part does not compile. */
export function callEvent<Shape extends z.ZodRawShape>({
  when,
  data,
  ...rest
}: EventDefinition<Shape>) {
  return { ...rest, data: eventData(data).describe(when) };
}

/** For people. */
export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
