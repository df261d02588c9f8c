// A step consists of a call's next events, in order, and the state that they lead to. Both are
// stored together. Steps that are waiting for the database are folded into one step per call.

import type { PersonOutcomes } from '../abandonment/abandonment.ts';
import type { CallEvent, EventOf, TerminalEvent } from '../contract/call-event.ts';
import type { StoredLeg } from '../contract/stored-leg.ts';
import type { CallEvidence } from '../rules/evidence.ts';

export type CallEnding = {
  readonly event: TerminalEvent;
  /**
   * Stored instead of `event` if the database turns out to contain an answer that the machine gave
   * up on without knowing whether it had been stored. The list starts with `answered`, which may
   * not have been published yet, and ends with a terminal event.
   */
  readonly ifAnswered?: readonly CallEvent[];
  /** Omitted if the call has none. */
  readonly evidence?: CallEvidence;
  /** Set if certainly no INVITE left, so that the call is no attempt to call its number. */
  readonly isUnsent?: true;
  /**
   * Set if another process may have sent the INVITE, and has died without storing when: it left
   * before this time, if at all.
   */
  readonly sentBy?: Date;
};

/** `leg` is omitted once the leg has ended on the wire, because its state is no longer needed. */
export type SecondLeg = { readonly legId: string; readonly leg?: StoredLeg };

export type CallStep = {
  /** The step's events, except those in `ending`. */
  readonly events: readonly CallEvent[];
  /** The first leg's INVITE, early dialog or dialog. Another process needs it to end the leg. */
  readonly leg?: StoredLeg;
  /**
   * Set if the far end hung up or refused the first leg, in which case there's nothing left to end.
   */
  readonly legIsOver?: true;
  /** State of the second legs. Each leg appears at most once. */
  readonly secondLegs?: readonly SecondLeg[];
  /** When the first INVITE left. */
  readonly dialedAt?: Date;
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  readonly ending?: CallEnding;
  /** What the call means for its campaign's figures. Omitted if the step doesn't change that. */
  readonly person?: PersonOutcomes;
};

/**
 * Folds two steps into one. If the later step gives up the answer, the earlier step's answer is
 * dropped, because an answer only counts if it has already been stored.
 */
export function fold(earlier: CallStep, later: CallStep): CallStep {
  const isAnswerUncertain = later.ending?.ifAnswered !== undefined;
  const { answeredAt, ...rest } = earlier;
  const kept: CallStep = isAnswerUncertain
    ? { ...rest, events: earlier.events.filter(({ type }) => type !== 'answered') }
    : earlier;
  const secondLegs = latest([...(earlier.secondLegs ?? []), ...(later.secondLegs ?? [])]);
  const ringingAt = earlier.ringingAt ?? later.ringingAt;
  const person = later.person ?? earlier.person;
  return {
    ...kept,
    ...later,
    ...(ringingAt === undefined ? {} : { ringingAt }),
    ...(secondLegs.length === 0 ? {} : { secondLegs }),
    ...(person === undefined ? {} : { person }),
    events: [...kept.events, ...later.events],
  };
}

/** @returns undefined if the person didn't opt out in this step */
export function optOutOf({ events }: CallStep): EventOf<'opted-out'> | undefined {
  return events.find((event) => event.type === 'opted-out');
}

/** Returns the new state of each leg that the step changes. A first leg's id is the call's id. */
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

/** Returns all events that the step may store, including both variants of its ending. */
export function eventsOf({ events, ending }: CallStep): readonly CallEvent[] {
  if (ending === undefined) return events;
  return [...events, ending.event, ...(ending.ifAnswered ?? [])];
}
