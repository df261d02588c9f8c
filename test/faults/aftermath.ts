// The records of a storm, which the invariants check after all faults have ended.

import type { FarCall } from '../support/far-end.ts';
import type { BotConnection } from './faulty-bots.ts';

export type StreamEvent = {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly callId: string;
  readonly eventSequence: number;
  readonly data: Readonly<Record<string, unknown>>;
};

export type DeliveredNotification = {
  readonly eventId: string;
  readonly callId: string;
  readonly sequence: number;
  readonly status: string;
};

/**
 * A fault after which a process may not know, or may have been unable to store, that a far end has
 * left its call: the process died or was stopped, it was cut off from SQL or from its engine, or
 * the engine died. Faults of NATS, receivers and bots are not of this kind.
 */
export type Fault = {
  readonly what: string;
  /** The node that it happened to. Undefined if all nodes share the part. */
  readonly node?: string;
  /** `hindered`: the node was stopped or cut off from its engine, so it could not hang up. */
  readonly effect?: 'died' | 'hindered';
  readonly from: number;
  readonly to?: number;
  /** How much later phones are hung up because of the fault. Default: not later. */
  readonly delaysHangUpMs?: number;
};

export type EngineDeath = { readonly at: number; readonly backAt?: number };

export type Aftermath = {
  /** Call ids of requests that were answered with 200, keyed by the number that they dial. */
  readonly accepted: ReadonlyMap<string, string>;
  /** Numbers of requests whose answer said that nothing was accepted. */
  readonly refused: ReadonlySet<string>;
  readonly farCalls: readonly FarCall[];
  /** `raw` is the event as the stream holds it, with its members sorted. */
  readonly events: readonly { readonly raw: string; readonly event: StreamEvent }[];
  /** `raw` is the body as the receiver accepted it with a 2xx. */
  readonly notifications: readonly { readonly raw: string; readonly body: DeliveredNotification }[];
  /** The start of the storm, by `Date.now()`. */
  readonly startedAt: number;
  /** When the SIP engine died, and when it ran again, which takes time on a busy machine. */
  readonly engineDeaths: readonly EngineDeath[];
  readonly botConnections: readonly BotConnection[];
  /** The number of each agent, with the number of the person whom the agent is for. */
  readonly agents: ReadonlyMap<string, string>;
  readonly faults: readonly Fault[];
};

export const isTerminal = (type: string): boolean => /^(completed|failed)$/i.test(type);

/**
 * Returns the id of the call that a number belongs to: the number of the person, or of the agent to
 * whom the person is transferred.
 */
export function callIdOf(
  { accepted, agents }: Pick<Aftermath, 'accepted' | 'agents'>,
  number: string,
): string | undefined {
  return accepted.get(agents.get(number) ?? number);
}

/** Returns when each call ended, by `Date.now()`. */
export function endsOf({ events }: Pick<Aftermath, 'events'>): ReadonlyMap<string, number> {
  const ended = events.filter(({ event }) => isTerminal(event.type));
  return new Map(ended.map(({ event }) => [event.callId, Date.parse(event.time)]));
}

/** Returns the events of each call in their order, without duplicates. */
export function storiesOf({
  events,
}: Pick<Aftermath, 'events'>): readonly (readonly StreamEvent[])[] {
  const byCall = new Map<string, Map<number, StreamEvent>>();
  for (const { event } of events) {
    const story = byCall.get(event.callId) ?? new Map<number, StreamEvent>();
    byCall.set(event.callId, story.set(event.eventSequence, event));
  }
  return [...byCall.values()].map((story) =>
    [...story.values()].toSorted((a, b) => a.eventSequence - b.eventSequence),
  );
}

export function add(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key) ?? new Set<string>();
  set.add(value);
  sets.set(key, set);
}
