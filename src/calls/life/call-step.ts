// What is stored of a call in one go: its events, in order, and the state that they lead to. Steps
// that wait for the database are folded into one step for each call.

import type { CallEvent, TerminalEvent } from '../contract/call-event.ts';
import type { StoredLeg } from '../contract/stored-leg.ts';

export type CallEnding = {
  readonly event: TerminalEvent;
  /**
   * Stored instead of `event` if the database turns out to hold the answer. The machine gave that
   * answer up without knowing whether it was stored. In order: `answered` again, which may not have
   * been published, and last a terminal event.
   */
  readonly ifAnswered?: readonly CallEvent[];
};

/** `leg` is omitted if the leg is off the wire. No process needs its state any more. */
export type SecondLeg = { readonly legId: string; readonly leg?: StoredLeg };

export type CallStep = {
  /** Without the events of the ending. */
  readonly events: readonly CallEvent[];
  /** The INVITE, early dialog or dialog: what another process needs to end the first leg. */
  readonly leg?: StoredLeg;
  /** Set if the far end has left the first leg by itself, so that there is nothing to end. */
  readonly legIsOver?: true;
  /** The state of second legs, each at most once. */
  readonly secondLegs?: readonly SecondLeg[];
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  readonly ending?: CallEnding;
};

/**
 * Folds two steps into one. If the later step doubts the answer, the answer of the earlier one is
 * dropped: only what was stored by then counts.
 */
export function fold(earlier: CallStep, later: CallStep): CallStep {
  const isAnswerUncertain = later.ending?.ifAnswered !== undefined;
  const { answeredAt, ...rest } = earlier;
  const kept: CallStep = isAnswerUncertain
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

/**
 * The current state of each leg that the step changes. The id of the first leg is the id of its
 * call.
 */
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

/** All events that the step may store, including both variants of the ending. */
export function eventsOf({ events, ending }: CallStep): readonly CallEvent[] {
  if (ending === undefined) return events;
  return [...events, ending.event, ...(ending.ifAnswered ?? [])];
}
