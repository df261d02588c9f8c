// What the calling rules forbid, computed from what the callee and the dialers saw. It shares no
// code with `src/rules`: zones are a short table of its own, and time is counted in minutes.
// All functions are pure. Each violation is described by a sentence.

import type { Invite } from './callee.ts';

/** The rules of an account, or of a set that requests name, as plain numbers. */
export type PlainRules = {
  readonly attempts?: { readonly most: number; readonly withinMs: number };
  readonly afterAnsweredMs?: number;
  readonly hours?: readonly PlainWindow[];
};

/** Minutes after midnight of the person's time. Every day has the same windows. */
export type PlainWindow = { readonly from: number; readonly until: number };

/** A rule set that was in force at most between these instants. */
export type RulesInForce = {
  readonly accountId: string;
  readonly name: string;
  readonly rules: PlainRules;
  /** When its PUT was sent. */
  readonly from: number;
  /** When the answer to the PUT of the next version arrived. */
  readonly until: number;
};

/** Certainly in force from the answer to its PUT until its DELETE was sent, or until it expired. */
export type SuppressedSpan = {
  readonly accountId: string;
  readonly number: string;
  readonly from: number;
  readonly until: number;
};

export type RulesAftermath = {
  readonly invites: readonly Invite[];
  readonly suppressed: readonly SuppressedSpan[];
  readonly rules: readonly RulesInForce[];
};

/**
 * A call is checked when it is claimed, and its INVITE leaves a little later: at its turn on the
 * trunk, and when a busy machine gets to it. Suppression has no such delay, because it is checked
 * again before each INVITE.
 */
export const allowedDelayMs = 3_000;

/**
 * Minutes that the clocks of each prefix's only zone are ahead of UTC. No such zone has summer
 * time.
 */
export const offsets: Readonly<Record<string, number>> = {
  '1602': -7 * 60,
  '1808': -10 * 60,
  '81': 9 * 60,
  '91': 5 * 60 + 30,
  '971': 4 * 60,
  '254': 3 * 60,
};

const dayMinutes = 24 * 60;

export function forbiddenInvites(aftermath: RulesAftermath): readonly string[] {
  return [
    ...suppressedInvites(aftermath),
    ...invitesOutsideHours(aftermath),
    ...tooManyInvites(aftermath),
    ...tooEarlyInvites(aftermath),
  ];
}

export function suppressedInvites({ invites, suppressed }: RulesAftermath): readonly string[] {
  const spans = new Map<string, SuppressedSpan[]>();
  for (const span of suppressed) push(spans, `${span.accountId} ${span.number}`, span);
  return invites.flatMap(({ accountId, number, at, callId }) => {
    const span = spans
      .get(`${accountId} ${number}`)
      ?.find(({ from, until }) => from <= at && at < until);
    return span === undefined
      ? []
      : [`${callId} was sent ${at - span.from} ms after the suppression of its number`];
  });
}

export function invitesOutsideHours(aftermath: RulesAftermath): readonly string[] {
  return aftermath.invites.flatMap((invite) => {
    // Further gateways follow the first one, without another check of the hours.
    const versions = invite.gateway > 1 ? [] : rulesAt(aftermath, invite);
    if (versions.length === 0 || versions.some(({ rules }) => isWithinHours(rules, invite)))
      return [];
    return [`${invite.callId} was sent outside the hours of its number`];
  });
}

function isWithinHours({ hours }: PlainRules, { number, at }: Invite): boolean {
  if (hours === undefined) return true;
  const prefix = Object.keys(offsets).find((each) => number.startsWith(each)) ?? '';
  const offset = offsets[prefix];
  if (offset === undefined) throw new Error(`the oracle has no zone for ${prefix}`);
  return [at, at - allowedDelayMs].some((instant) => {
    const minute = modulo(Math.floor(instant / 60_000) + offset, dayMinutes);
    return hours.some(({ from, until }) => from <= minute && minute < until);
  });
}

export function tooManyInvites(
  aftermath: RulesAftermath,
  delayMs = allowedDelayMs,
): readonly string[] {
  return byNumber(aftermath).flatMap((invites) =>
    invites.flatMap((invite, index) => {
      const isForbidden = (rules: PlainRules): boolean => {
        if (rules.attempts === undefined) return false;
        const { most, withinMs } = rules.attempts;
        const earlier = invites[index - most];
        return earlier !== undefined && invite.at - earlier.at < withinMs - delayMs;
      };
      return refusedByAll(aftermath, invite, isForbidden)
        ? [`${invite.callId} is one attempt too many`]
        : [];
    }),
  );
}

/** INVITEs to a number that answered a short time ago, if a process stored the answer. */
export function tooEarlyInvites(aftermath: RulesAftermath): readonly string[] {
  return byNumber(aftermath).flatMap((invites) => {
    const answers = invites.filter((invite) => invite.isAnswerStored === true);
    return invites.flatMap((invite) => {
      const isForbidden = ({ afterAnsweredMs = 0 }: PlainRules): boolean =>
        answers.some(({ answeredAt = 0 }) => {
          const age = invite.at - answeredAt;
          return age > allowedDelayMs && age < afterAnsweredMs - allowedDelayMs;
        });
      return refusedByAll(aftermath, invite, isForbidden)
        ? [`${invite.callId} was sent too soon after an answer`]
        : [];
    });
  });
}

function refusedByAll(
  aftermath: RulesAftermath,
  invite: Invite,
  isForbidden: (rules: PlainRules) => boolean,
): boolean {
  const versions = rulesAt(aftermath, invite);
  return versions.length > 0 && versions.every(({ rules }) => isForbidden(rules));
}

/** The versions of the call's rule set that may have been in force when the call was checked. */
function rulesAt({ rules }: RulesAftermath, { accountId, at, rules: name = 'default' }: Invite) {
  return rules.filter(
    (version) =>
      version.accountId === accountId &&
      version.name === name &&
      version.from <= at &&
      at - allowedDelayMs < version.until,
  );
}

/** The attempts of each account and number, in order. */
function byNumber({ invites }: RulesAftermath): readonly (readonly Invite[])[] {
  const numbers = new Map<string, Invite[]>();
  for (const invite of invites) {
    if (invite.gateway === 1) push(numbers, `${invite.accountId} ${invite.number}`, invite);
  }
  return [...numbers.values()].map((each) => each.toSorted((a, b) => a.at - b.at));
}

function push<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
