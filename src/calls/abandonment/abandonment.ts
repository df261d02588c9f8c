// Decides whether a call was abandoned: answered by a person, although nobody was connected to that
// person within two seconds. Two regulators start the two seconds at different instants, so each
// call has two outcomes. Pure.
//
// States of an outcome:
// - undecided: no person has been detected, or the two seconds are running.
// - connected, abandoned, left: a person answered. `left` means that the person hung up first.
// - none: no person answered.
// A correction of the verdict replaces the outcome. The outcome at the end of the call is final.

import type { AmdEvent, AmdEventName } from '../detection/amd-event.ts';

/** The person must be connected within this time (16 CFR 310.4(b)(1)(iv) and Ofcom alike). */
export const connectWithinMs = 2_000;

export const meterFormulas = ['ftc', 'ofcom'] as const;
/**
 * The regulator whose formula it is. It decides when the two seconds begin. ftc: at the end of the
 * person's greeting. ofcom: at its beginning.
 */
export type MeterFormula = (typeof meterFormulas)[number];

export const personOutcomes = ['connected', 'abandoned', 'left', 'none'] as const;
export type PersonOutcome = (typeof personOutcomes)[number];

/** The kinds of people, bots or sounds that must reach the person. */
export const connectionKinds = ['agent', 'bot-or-agent', 'message'] as const;
export type ConnectionKind = (typeof connectionKinds)[number];

/** What the rule set of a call says about abandoned calls. */
export type AbandonmentRule = {
  /** The formula whose clock decides when the call counts as abandoned. */
  readonly formula: MeterFormula;
  readonly connected: ConnectionKind;
};

/** A person who answered, and when each clock began. */
export type PersonAnswered = {
  readonly clocks: Readonly<Record<MeterFormula, Date>>;
  /** From the answer to the end of the greeting. Undefined if detection heard no greeting. */
  readonly greetingEndedMs?: number;
};

/** What is known about a call that may be abandoned. */
export type Reach = {
  /** The person or machine of the last verdict. Undefined before the verdict. */
  readonly answerer?: PersonAnswered | 'machine';
  /** When somebody was first connected to whoever answered. */
  readonly connectedAt?: Date;
  /** When an agent answered, while the answer isn't stored yet. */
  readonly agentReachedAt?: Date;
  /** Set once the gateway has given up on the person and plays the announcement. */
  readonly givenUpAt?: Date;
};

export type PersonOutcomes = Readonly<Partial<Record<MeterFormula, PersonOutcome>>>;

/** A call's reach, with what has been stored about it. */
export type ReachProgress = Reach & {
  readonly outcomes: PersonOutcomes;
  /** True once the event `abandoned` has been emitted. */
  readonly isStated: boolean;
};

export const nothingReached: ReachProgress = { outcomes: {}, isStated: false };

/** Whether the call was abandoned, by the formula of its rule set. */
export function isAbandoned(
  { outcomes }: ReachProgress,
  rule: AbandonmentRule | undefined,
): boolean {
  return rule !== undefined && outcomes[rule.formula] === 'abandoned';
}

/** How and when the call ended. */
export type ReachEnd = { readonly at: Date; readonly isByPerson: boolean };

/**
 * Verdicts that count as a person, because no machine was heard. Without a greeting, both clocks
 * begin at the answer.
 */
const personVerdicts: ReadonlySet<AmdEventName> = new Set([
  'amd_human_detected',
  'amd_no_speech_detected',
  'amd_decision_timeout',
  'amd_error',
]);

/**
 * Returns who answered, according to the event that stated the last verdict. If the gateway was too
 * busy to hear a part of the call, the greeting may have begun in that part. Its clock then begins
 * at the earliest possible instant, so that no abandoned call counts as connected.
 */
export function answererOf(verdict: AmdEvent, answeredAt: Date): PersonAnswered | 'machine' {
  if (!personVerdicts.has(verdict.event)) return 'machine';
  const { elapsedMs, pauseMs, spanMs = 0, unheardMs = 0 } = verdict;
  const isGreeted = verdict.event === 'amd_human_detected' && pauseMs !== undefined;
  if (!isGreeted) return { clocks: { ftc: answeredAt, ofcom: answeredAt } };
  const greetingEndedMs = Math.max(0, elapsedMs - pauseMs);
  const greetingBeganMs = Math.max(0, greetingEndedMs - spanMs - unheardMs);
  return {
    clocks: { ftc: after(answeredAt, greetingEndedMs), ofcom: after(answeredAt, greetingBeganMs) },
    greetingEndedMs,
  };
}

/**
 * Returns the outcome by one formula.
 *
 * @param end the call's end, if it has ended
 * @returns undefined if the outcome is still undecided at `now`
 */
export function outcomeOf(
  reach: Reach,
  formula: MeterFormula,
  now: Date,
  end?: ReachEnd,
): PersonOutcome | undefined {
  const { answerer, givenUpAt } = reach;
  const connectedAt = connectedAtOf(reach);
  if (answerer === 'machine') return 'none';
  if (answerer === undefined) return end === undefined ? undefined : 'none';
  const deadline = deadlineOf(answerer, formula);
  const isTooLate =
    givenUpAt !== undefined && connectedAt !== undefined && connectedAt >= givenUpAt;
  if (connectedAt !== undefined && connectedAt <= deadline && !isTooLate) return 'connected';
  if (end?.isByPerson === true && end.at <= deadline) return 'left';
  const isOver = end !== undefined || givenUpAt !== undefined || now >= deadline;
  return isOver ? 'abandoned' : undefined;
}

/**
 * Returns when somebody was first connected. An agent counts from the answer: while it is being
 * stored, agent and person already talk, and the person may hang up.
 */
export function connectedAtOf({ connectedAt, agentReachedAt }: Reach): Date | undefined {
  if (connectedAt === undefined || agentReachedAt === undefined) {
    return connectedAt ?? agentReachedAt;
  }
  return agentReachedAt < connectedAt ? agentReachedAt : connectedAt;
}

export function deadlineOf({ clocks }: PersonAnswered, formula: MeterFormula): Date {
  return after(clocks[formula], connectWithinMs);
}

function after(instant: Date, ms: number): Date {
  return new Date(instant.getTime() + ms);
}
