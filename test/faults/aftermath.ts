// What is left of a storm when all is calm, for the invariants to look at.

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

export type Told = {
  readonly eventId: string;
  readonly callId: string;
  readonly sequence: number;
  readonly status: string;
};

/**
 * After which a process may not know, or could not store, that a far end is out of its call: it died, was stopped, was cut off from
 * SQL or from its engine, or that died. Not what went on with NATS, receivers and bots.
 */
export type Fault = { readonly what: string; readonly from: number; readonly to?: number };

export type EngineDeath = { readonly at: number; readonly backAt?: number };

export type Aftermath = {
  /** Call ids that were answered with 200, by the number that they dial. */
  readonly accepted: ReadonlyMap<string, string>;
  /** The numbers of requests that were answered with a word that nothing was accepted. */
  readonly refused: ReadonlySet<string>;
  readonly farCalls: readonly FarCall[];
  /** Raw, as the stream holds them. */
  readonly events: readonly { readonly raw: string; readonly event: StreamEvent }[];
  /** Raw, as the receiver took them with a 2xx. */
  readonly notifications: readonly { readonly raw: string; readonly body: Told }[];
  /** Of the storm, by `Date.now()`. */
  readonly startedAt: number;
  /** When the SIP engine died, and when it was there again: on a busy machine that takes its time. */
  readonly engineDeaths: readonly EngineDeath[];
  readonly botConnections: readonly BotConnection[];
  /** The numbers of agents, and the person's that each was for. */
  readonly agents: ReadonlyMap<string, string>;
  readonly faults: readonly Fault[];
};

export const isTerminal = (type: string): boolean => /^(completed|failed)$/i.test(type);

/** Of the person, or of the agent whom they were to be connected to. */
export function callIdOf(
  { accepted, agents }: Pick<Aftermath, 'accepted' | 'agents'>,
  number: string,
): string | undefined {
  return accepted.get(agents.get(number) ?? number);
}

/** When each call ended, by `Date.now()`. */
export function endsOf({ events }: Pick<Aftermath, 'events'>): ReadonlyMap<string, number> {
  const ended = events.filter(({ event }) => isTerminal(event.type));
  return new Map(ended.map(({ event }) => [event.callId, Date.parse(event.time)]));
}

/** Events of one call, each once, in their order. */
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
