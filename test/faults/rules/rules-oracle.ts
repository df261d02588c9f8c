// What the calling rules forbid, computed from what the callee and the dialers saw: when INVITEs
// arrived and phones were answered, and when requests were sent and answered. It shares no code
// with `src/rules`: zones are a short table of its own, and time is counted in minutes. There is no
// tolerance for late INVITEs. All functions are pure. Each violation is described by a sentence.

import {
  groupedByNumber,
  isCertainlySuppressed,
  keyOf,
  type SuppressionRequest,
} from './suppression-history.ts';

/** All instants come from `Date.now()`. */
export type Invite = {
  /** When the INVITE arrived at the callee. */
  readonly at: number;
  /** Before the gateway checked the call. The rules of that time may still apply to the INVITE. */
  readonly checkedAfter: number;
  readonly callId: string;
  readonly accountId: string;
  readonly number: string;
  /** The rule set that the request named. */
  readonly rules?: string;
  /** 1 for the first INVITE of a call. Further gateways of the call are no further attempts. */
  readonly gateway: number;
  answeredAt?: number;
  /** When a gateway knew of the answer. A process that dies before takes it to its grave. */
  answerStoredAt?: number;
};

/** The rules of an account, or of a set that requests name, as plain numbers. */
export type PlainRules = {
  readonly attempts?: { readonly most: number; readonly withinMs: number };
  readonly afterAnsweredMs?: number;
  readonly hours?: readonly PlainWindow[];
  /** Minutes that the zone of the rules is ahead of UTC. Default: the zone of the number. */
  readonly offset?: number;
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

export type RulesAftermath = {
  readonly invites: readonly Invite[];
  readonly suppressions: readonly SuppressionRequest[];
  readonly rules: readonly RulesInForce[];
};

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
  return [...suppressedInvites(aftermath), ...invitesAgainstRules(aftermath)];
}

function suppressedInvites({ invites, suppressions }: RulesAftermath): readonly string[] {
  const requests = groupedByNumber(suppressions);
  return invites.flatMap((invite) => {
    const own = requests.get(keyOf(invite)) ?? [];
    if (!isCertainlySuppressed(own, invite.at)) return [];
    const answers = own.map(({ answeredAt = 0 }) => answeredAt).filter((at) => at <= invite.at);
    const ageMs = invite.at - Math.max(...answers);
    return [`${described(invite)} ${ageMs} ms after the suppression of its number`];
  });
}

/** Returns the versions of the rule set that may have been in force when the call was checked. */
type FindRules = (invite: Invite) => readonly PlainRules[];

/** INVITEs that no version of their rule set permits that may have been in force. */
function invitesAgainstRules(aftermath: RulesAftermath): readonly string[] {
  const sets = groupedBySet(aftermath.rules);
  const versionsOf: FindRules = ({ accountId, at, checkedAfter, rules: name = 'default' }) =>
    (sets.get(`${accountId} ${name}`) ?? [])
      .filter(({ from, until }) => from <= at && checkedAfter <= until)
      .map(({ rules }) => rules);
  return [...groupedByNumber(aftermath.invites).values()].flatMap((unsorted) => {
    const invites = unsorted.toSorted((a, b) => a.at - b.at);
    return invites.flatMap((invite) => {
      const reasons = versionsOf(invite).map((rules) =>
        whyForbidden(rules, invite, invites, versionsOf),
      );
      const [reason] = reasons;
      return reason === undefined || reasons.includes(undefined)
        ? []
        : [`${described(invite)} ${reason}`];
    });
  });
}

function described({ callId, gateway, at }: Invite): string {
  return `${callId} was sent to gateway ${gateway} at ${new Date(at).toISOString()},`;
}

/** @param invites all INVITEs to the number, in order */
function whyForbidden(
  rules: PlainRules,
  invite: Invite,
  invites: readonly Invite[],
  versionsOf: FindRules,
): string | undefined {
  if (!isWithinHours(rules, invite)) return 'outside the hours of its number';
  // Further gateways follow the first one, without another check of the attempts and the rest.
  if (invite.gateway > 1) return undefined;
  const attempts = invites.filter(({ gateway }) => gateway === 1);
  const until = attempts.slice(0, attempts.indexOf(invite) + 1);
  return whyTooMany(rules, until, versionsOf) ?? whyTooEarly(rules, invite, attempts);
}

function isWithinHours({ hours, offset: given }: PlainRules, { number, at }: Invite): boolean {
  if (hours === undefined) return true;
  const prefix = Object.keys(offsets).find((each) => number.startsWith(each)) ?? '';
  const offset = given ?? offsets[prefix];
  if (offset === undefined) throw new Error(`the oracle has no zone for ${prefix}`);
  const minute = modulo(Math.floor(at / 60_000) + offset, dayMinutes);
  return hours.some(({ from, until }) => from <= minute && minute < until);
}

/** @param attempts those until the last one, which is judged */
function whyTooMany(
  { attempts: rule }: PlainRules,
  attempts: readonly Invite[],
  versionsOf: FindRules,
): string | undefined {
  const invite = attempts.at(-1);
  if (rule === undefined || invite === undefined) return undefined;
  // INVITEs may overtake each other between their checks and the phone. An attempt does not count
  // if it may have been checked later, under a rule set that permits it even as the last of all.
  const counted = attempts
    .slice(0, -1)
    .filter((other) => other.at <= invite.checkedAfter || !mayBeLast(other, attempts, versionsOf));
  const earlier = counted.at(-rule.most);
  if (earlier === undefined) return undefined;
  const earlyMs = rule.withinMs - (invite.at - earlier.at);
  return earlyMs > 0 ? `one attempt too many by ${earlyMs} ms` : undefined;
}

function mayBeLast(invite: Invite, attempts: readonly Invite[], versionsOf: FindRules): boolean {
  const versions = versionsOf(invite);
  return versions.some(({ attempts: rule }) => {
    if (rule === undefined) return true;
    const since = invite.at - rule.withinMs;
    return attempts.filter((other) => other !== invite && other.at > since).length < rule.most;
  });
}

/** Only an answer counts that a process had stored before the call was checked. */
function whyTooEarly(
  { afterAnsweredMs = 0 }: PlainRules,
  { at, checkedAfter }: Invite,
  attempts: readonly Invite[],
): string | undefined {
  const answers = attempts.flatMap(({ answeredAt, answerStoredAt = Number.POSITIVE_INFINITY }) =>
    answeredAt !== undefined && answerStoredAt < checkedAfter ? [answeredAt] : [],
  );
  const earlyMs = afterAnsweredMs - (at - Math.max(...answers));
  return earlyMs > 0 ? `too soon after an answer by ${earlyMs} ms` : undefined;
}

function groupedBySet(
  rules: readonly RulesInForce[],
): ReadonlyMap<string, readonly RulesInForce[]> {
  const sets = new Map<string, RulesInForce[]>();
  for (const version of rules) {
    const key = `${version.accountId} ${version.name}`;
    sets.set(key, [...(sets.get(key) ?? []), version]);
  }
  return sets;
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
