// What is stored of a call at once: its events, in order, and the state that they lead to. What waits for the database is folded
// into one step a call.

import type { CallEvent, TerminalEvent } from '../contract/call-event.ts';
import type { StoredLeg } from '../contract/stored-leg.ts';

export type CallEnding = {
  readonly event: TerminalEvent;
  /**
   * In place of `event`, where the database turns out to hold the answer: it was given up without knowing whether it had been
   * stored. In order: `answered` again, which may not have been published, and at last a terminal one.
   */
  readonly ifAnswered?: readonly CallEvent[];
};

/** Without a leg: it is off the wire, and no process needs to know of it any more. */
export type SecondLeg = { readonly legId: string; readonly leg?: StoredLeg };

export type CallStep = {
  /** Without those of the ending. */
  readonly events: readonly CallEvent[];
  /** INVITE, early dialog or dialog: what another process needs to end it. */
  readonly leg?: StoredLeg;
  /** The far end has left it by itself, so that there is nothing to end any more. */
  readonly legIsOver?: true;
  /** The same of second legs, each once. */
  readonly secondLegs?: readonly SecondLeg[];
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  readonly ending?: CallEnding;
};

/** One after the other. An answer that the later one doubts is taken out: only what was stored by then counts. */
export function fold(earlier: CallStep, later: CallStep): CallStep {
  const isDoubted = later.ending?.ifAnswered !== undefined;
  const { answeredAt, ...rest } = earlier;
  const kept: CallStep = isDoubted
    ? { ...rest, events: earlier.events.filter(({ type }) => type !== 'answered') }
    : earlier;
  const secondLegs = latest([...(earlier.secondLegs ?? []), ...(later.secondLegs ?? [])]);
  const ringingAt = earlier.ringingAt ?? later.ringingAt;
  return {
    ...kept,
    ...later,
    ...(ringingAt === undefined ? {} : { ringingAt }),
    ...(secondLegs.length === 0 ? {} : { secondLegs }),
    events: [...kept.events, ...later.events],
  };
}

/** What is known of each leg now. The first one's id is that of its call. */
export function legsOf(
  callId: string,
  { leg, legIsOver, secondLegs = [] }: CallStep,
): readonly SecondLeg[] {
  if (legIsOver === true) return [{ legId: callId }, ...secondLegs];
  return leg === undefined ? secondLegs : [{ legId: callId, leg }, ...secondLegs];
}

function latest(legs: readonly SecondLeg[]): readonly SecondLeg[] {
  return [...new Map(legs.map((leg) => [leg.legId, leg])).values()];
}

/** Every event that may come of it. */
export function eventsOf({ events, ending }: CallStep): readonly CallEvent[] {
  if (ending === undefined) return events;
  return [...events, ending.event, ...(ending.ifAnswered ?? [])];
}
