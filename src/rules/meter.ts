// The share of abandoned calls of a campaign, by the formulas of two regulators, and what follows
// from it for the campaign's next call. Pure: the caller counts, and this file computes.
//
// - ftc: abandoned calls / calls answered by a person (16 CFR 310.4(b)(4)(i)), over the campaign's
//   first 30 days and each 30 days after them.
// - ofcom: (abandoned + estimate) / (abandoned + estimate + connected), over a calendar day, where
//   the estimate is the number of people that detection took for machines (Ofcom's statement on
//   persistent misuse of 2010 and its revision of 2016, annex 3).
//
// src/rules/README.md says what counts as an abandoned call, and which texts the authors have read.

/** How many calls of a campaign ended in which way, by one formula's clock, in one window. */
export type Tally = {
  readonly answeredByPerson: number;
  readonly abandoned: number;
  /** Calls in which an agent, a bot or the message was there in time. */
  readonly connected: number;
};

export type Share = {
  readonly percent: number;
  /** The 95 % upper bound of `percent`. With few calls, it is far above it. */
  readonly upper95: number;
};

export function ftcShare({ abandoned, answeredByPerson }: Tally): Share {
  return shareOf(abandoned, answeredByPerson);
}

/** @param estimate the number of people who were hung up on as machines */
export function ofcomShare({ abandoned, connected }: Tally, estimate: number): Share {
  return shareOf(abandoned + estimate, abandoned + estimate + connected);
}

/**
 * Estimates how many people detection took for machines.
 *
 * @param falseMachineRate share of people that detection takes for machines, from a labelled sample
 * of the account's own recordings
 */
export function falseMachines(answeredByPerson: number, falseMachineRate: number): number {
  return (answeredByPerson * falseMachineRate) / (1 - falseMachineRate);
}

function shareOf(part: number, whole: number): Share {
  if (whole === 0) return { percent: 0, upper95: 100 };
  return { percent: (100 * part) / whole, upper95: 100 * upperBound95(part, whole) };
}

/** The 95 % quantile of the normal distribution: a one-sided bound. */
const z95 = 1.6449;

/** Wilson's upper bound of a share. It also holds for few calls and for shares near zero. */
function upperBound95(part: number, whole: number): number {
  const share = part / whole;
  const square = z95 ** 2 / whole;
  const spread = z95 * Math.sqrt((share * (1 - share)) / whole + square / (4 * whole));
  return Math.min(1, (share + square / 2 + spread) / (1 + square));
}

/** The part of a rule set that holds a campaign back. */
export type HoldRule = {
  /** Maximum share, in percent. */
  readonly most: number;
  /** Up to this many abandoned calls never hold a campaign. */
  readonly allow: number;
};

/** A campaign's current window, by the formula of the rule set. */
export type CampaignCounts = Pick<Tally, 'answeredByPerson' | 'abandoned'> & {
  /** Calls of the window that were dialled and have ended, or whose fate is known. */
  readonly decided: number;
  /** Calls that were dialled and may still reach a person whom nobody talks to. */
  readonly inFlight: number;
};

/** What is stored about a campaign that is or was held. */
export type HoldState = {
  /** Since when the campaign has been waiting. Undefined if it isn't. */
  readonly heldSince?: Date;
  /** When the next probe may leave. */
  readonly heldUntil?: Date;
  /** The last pause before a probe. */
  readonly pauseMs?: number;
};

export type HoldVerdict =
  | { readonly kind: 'permitted' }
  /** The call is dialled although the share is too high, to find out whether it still is. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'wait'; readonly hold: Required<HoldState> };

const firstPauseMs = 30_000;
const longestPauseMs = 15 * 60_000;

/**
 * A campaign leaves this much of what it may abandon to probes, unless the probes are connected.
 * While the bot is broken, the pauses before the seventh probe that reaches a person add up to an
 * hour.
 */
const reservedForProbes = 7;
const reservedShare = 0.25;

/**
 * Decides whether a campaign's next call may be dialled.
 *
 * Calls in flight count as abandoned, in proportion to the campaign's share of people. If a bot
 * breaks, all of them may become abandoned, and the share must not exceed the limit even then. So a
 * campaign close to its limit dials one call at a time, each as a probe, and one above it waits for
 * a pause before each probe.
 */
export function judgeHold(
  rule: HoldRule,
  counts: CampaignCounts,
  state: HoldState,
  now: Date,
): HoldVerdict {
  if (mayDialMore(rule, counts)) return { kind: 'permitted' };
  const { heldSince = now, pauseMs = firstPauseMs } = state;
  const isWithin = worstCase(counts, 1) <= mayAbandon(rule, counts, 1);
  const nextProbeAt = isWithin ? now : new Date(now.getTime() + pauseMs);
  const heldUntil = state.heldUntil ?? nextProbeAt;
  if (counts.inFlight === 0 && heldUntil <= now) return { kind: 'probe' };
  return { kind: 'wait', hold: { heldSince, heldUntil, pauseMs } };
}

/** Returns how many calls a campaign may dial now, one after the other, up to `wanted`. */
export function spareCalls(rule: HoldRule, counts: CampaignCounts, wanted: number): number {
  let spare = 0;
  while (spare < wanted && mayDialMore(rule, { ...counts, inFlight: counts.inFlight + spare })) {
    spare += 1;
  }
  return spare;
}

function mayDialMore(rule: HoldRule, counts: CampaignCounts): boolean {
  const { abandoned, inFlight } = counts;
  // A new campaign has reached so few people that its first calls in flight would hold it. A bound
  // on them was simulated with 2 to 10 calls a second, and made the share after an hour higher: the
  // calls that `allow` permits and the probes are abandoned anyway, and fewer people answer.
  if (abandoned <= rule.allow) return true;
  const most = mayAbandon(rule, counts, inFlight + 1);
  const reserve = Math.min(reservedForProbes, reservedShare * most);
  return worstCase(counts, inFlight + 1) <= most - reserve;
}

/** How many calls may be abandoned once `calls` further ones have been decided. */
function mayAbandon({ most }: HoldRule, counts: CampaignCounts, calls: number): number {
  return (most / 100) * (counts.answeredByPerson + calls * shareOfPeople(counts));
}

/** How many calls are hardly ever exceeded by those that the next `calls` leave abandoned. */
function worstCase(counts: CampaignCounts, calls: number): number {
  const peoplePerCall = shareOfPeople(counts);
  const mean = calls * peoplePerCall;
  // Three standard deviations above the mean of the binomial distribution.
  const most = calls === 1 ? mean : mean + 3 * Math.sqrt(mean * (1 - peoplePerCall));
  return counts.abandoned + Math.min(calls, most);
}

/** Before the first call is decided, every call may reach a person. */
function shareOfPeople({ answeredByPerson, decided }: CampaignCounts): number {
  return decided === 0 ? 1 : answeredByPerson / decided;
}

/** How a probe ended. other: it reached no person, so it says nothing about the campaign. */
export type ProbeResult = 'abandoned' | 'connected' | 'other';

/**
 * Returns the state after a probe. An abandoned probe doubles the pause before the next one. After
 * any other probe, the next one may leave at once, because nobody was harmed.
 */
export function afterProbe(state: HoldState, result: ProbeResult, at: Date): HoldState {
  const { pauseMs = firstPauseMs } = state;
  switch (result) {
    case 'abandoned': {
      const nextPauseMs = Math.min(longestPauseMs, pauseMs * 2);
      return { ...state, heldUntil: new Date(at.getTime() + nextPauseMs), pauseMs: nextPauseMs };
    }
    case 'connected':
      return { ...state, heldUntil: at, pauseMs: firstPauseMs };
    case 'other':
      return { ...state, heldUntil: at };
  }
}
