// Decides whether a call may be dialled now. Pure: the caller reads the facts, and holds the locks
// that keep them true until the decision is stored.
//
// If several rules refuse a call, the first of this order is named:
// 1. suppressed: the person said no. Nothing may hide that, and no waiting changes it.
// 2. hours, attempts, rest: what protects the person from the next call. Hours come first because
//    they also refuse the first call to a number, so dialers meet them most.
// 3. abandoned-rate: the state of the campaign, not of the person. It comes last because a campaign
//    that is held lets single calls through as probes, and a probe must not be spent on a call that
//    another rule then refuses.

import type { RuleName } from '../calls/rules/rule-words.ts';
import { attemptPermittedAt } from './attempts.ts';
import type { HoursRule, Rules } from './compile-rules.ts';
import { type LastContact, restEndsAt } from './rest.ts';
import type { Otherwise } from './rule-set.ts';
import { zonesOfNumber } from './zones/number-zones.ts';

export type CallFacts = LastContact & {
  /**
   * E.164 digits, without the `+`. Undefined for a `sip:` target that isn't a number: only
   * suppression applies to it.
   */
  readonly number?: string;
  /** IANA name from the request, which takes precedence over the rule set's `zones`. */
  readonly timeZone?: string;
  /** Present if the number or URI is suppressed now. */
  readonly suppression?: { readonly until?: Date };
  /** The account's earlier attempts to call the number, in any order. */
  readonly attemptedAt: readonly Date[];
  /**
   * Returns until when the call's campaign is held, or undefined if it isn't. Asked only if every
   * other rule permits the call.
   */
  readonly campaignHeldUntil?: () => Date | undefined;
};

export type Decision =
  | { readonly kind: 'permitted'; readonly notBefore?: never }
  /** The call waits, and is checked again at `until`. */
  | { readonly kind: 'wait'; readonly rule: RuleName; readonly until: Date }
  /** The call ends. `notBefore` is when the rules would permit it, if nothing happens before. */
  | { readonly kind: 'fail'; readonly rule: RuleName; readonly notBefore?: Date };

/**
 * @param rules the call's rule set. Undefined if none applies to it
 * @public
 */
export function decide(rules: Rules | undefined, facts: CallFacts, now: Date): Decision {
  const { suppression, number } = facts;
  if (suppression !== undefined) return failure('suppressed', suppression.until);
  if (rules === undefined || number === undefined) return { kind: 'permitted' };
  const zones = callZones(rules.hours, number, facts.timeZone);
  const refused = refusals(rules, facts, zones, now);
  const [first] = refused;
  if (first === undefined) return heldOrPermitted(facts);
  if (first.otherwise === 'wait') {
    const until = allPermitAt(rules, refused, 'wait', zones, now);
    // The call would wait in vain if its hours never come.
    if (until !== undefined) return { kind: 'wait', rule: first.rule, until };
  }
  return failure(first.rule, allPermitAt(rules, refused, 'any', zones, now));
}

function failure(rule: RuleName, notBefore: Date | undefined): Decision {
  return { kind: 'fail', rule, ...(notBefore === undefined ? {} : { notBefore }) };
}

function heldOrPermitted({ campaignHeldUntil }: CallFacts): Decision {
  const until = campaignHeldUntil?.();
  return until === undefined
    ? { kind: 'permitted' }
    : { kind: 'wait', rule: 'abandoned-rate', until };
}

type Refusal = {
  readonly rule: 'hours' | 'attempts' | 'rest';
  readonly otherwise: Otherwise;
  /** When the rule itself permits the call. Undefined if that's not within a year. */
  readonly until: Date | undefined;
};

/** Returns what the rules about the person refuse, in order. */
function refusals(
  { hours, attempts, rest }: Rules,
  facts: CallFacts,
  zones: readonly string[] | undefined,
  now: Date,
): readonly Refusal[] {
  const found: Refusal[] = [];
  if (hours !== undefined) {
    const until = openingAt(hours, zones, now);
    if (until?.getTime() !== now.getTime()) {
      found.push({ rule: 'hours', otherwise: hours.otherwise, until });
    }
  }
  const tooMany = attempts.flatMap((rule) => {
    const until = attemptPermittedAt(rule, facts.attemptedAt, now);
    return until === undefined ? [] : [{ rule: 'attempts' as const, ...rule, until }];
  });
  // A rule that ends the call is not outvoted by one that lets it wait.
  found.push(...tooMany.toSorted((a, b) => a.otherwise.localeCompare(b.otherwise)));
  if (rest !== undefined) {
    const until = restEndsAt(rest, facts, now);
    if (until !== undefined) found.push({ rule: 'rest', otherwise: rest.otherwise, until });
  }
  return found;
}

/**
 * Returns when all refusing rules permit the call, and its hours too. With `wait`, rules that end
 * the call are left out: they are checked when it has waited.
 */
function allPermitAt(
  { hours }: Rules,
  refused: readonly Refusal[],
  which: 'wait' | 'any',
  zones: readonly string[] | undefined,
  now: Date,
): Date | undefined {
  const counts = ({ otherwise }: { readonly otherwise: Otherwise }) =>
    which === 'any' || otherwise === 'wait';
  const times = refused
    .filter((refusal) => refusal.rule !== 'hours' && counts(refusal))
    .map(({ until = now }) => until.getTime());
  const at = new Date(Math.max(now.getTime(), ...times));
  return hours === undefined || !counts(hours) ? at : openingAt(hours, zones, at);
}

/**
 * Returns when the hours end that permit a call now. An INVITE that has to wait may then no longer
 * leave.
 *
 * @returns undefined if no hours apply, or if they don't end within a day
 */
export function hoursEndAt(
  { hours }: Rules,
  { number, timeZone }: Pick<CallFacts, 'number' | 'timeZone'>,
  now: Date,
): Date | undefined {
  const zones = number === undefined ? undefined : callZones(hours, number, timeZone);
  if (hours === undefined || zones === undefined) return undefined;
  const closingMs = hours.calendar.closing(zones, now.getTime());
  return closingMs === undefined ? undefined : new Date(closingMs);
}

/** @returns undefined if there is no opening within a year, or if the zones aren't known */
function openingAt(
  { calendar }: HoursRule,
  zones: readonly string[] | undefined,
  from: Date,
): Date | undefined {
  if (zones === undefined) return undefined;
  const openingMs = calendar.opening(zones, from.getTime());
  return openingMs === undefined ? undefined : new Date(openingMs);
}

/**
 * Returns the time zones in which a person may be. All of them must allow the call.
 *
 * @returns undefined if they aren't known, as for satellite phones and other numbers without a
 *   country. No hour is safe for them, so the hours refuse them, unless the request or the rule
 *   set names a zone
 */
export function callZones(
  hours: Pick<HoursRule, 'zones'> | undefined,
  number: string,
  timeZone: string | undefined,
): readonly string[] | undefined {
  if (timeZone !== undefined) return [timeZone];
  if (hours !== undefined && hours.zones !== 'callee') return [hours.zones];
  return zonesOfNumber(number);
}
