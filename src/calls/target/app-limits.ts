// What an app may dial, and how much: guards against toll fraud with stolen credentials. Pure.

import type { DialoutRequest, DialTarget } from '../call-types.ts';

export type AppLimits = {
  /** Digits that a number must begin with, country code first; left out: any number. */
  readonly allowedPrefixes?: readonly string[];
  /** Digits that a number must not begin with; stronger than the allowed ones. */
  readonly deniedPrefixes?: readonly string[];
  /** Accepted and not ended: those that wait in the queue count too. */
  readonly callsAtOnce?: number;
  /** Accepted on one day in UTC. */
  readonly callsPerDay?: number;
};

/** Whom a request would have called: each must be allowed. */
export function targetsOf({
  target,
  bridge,
}: Pick<DialoutRequest, 'target' | 'bridge'>): readonly DialTarget[] {
  return bridge === undefined ? [target] : [target, bridge.to];
}

/** The number that is dialled must be known to judge it: with prefixes, nothing but a global number is. */
export function mayDial(limits: AppLimits | undefined, target: DialTarget): boolean {
  const { allowedPrefixes, deniedPrefixes } = limits ?? {};
  if (allowedPrefixes === undefined && deniedPrefixes === undefined) return true;
  const number = globalNumberOf(target);
  if (number === undefined) return false;
  const begins = (prefix: string) => number.startsWith(prefix);
  return (allowedPrefixes?.some(begins) ?? true) && deniedPrefixes?.some(begins) !== true;
}

/**
 * Of a `sip:` target it is the user part, whatever the host: a trunk dials it, and so may any exchange. No country code
 * begins with 0: `0011900…` and `00900…` are not what they look like, and would pass every list of prefixes.
 */
function globalNumberOf(target: DialTarget): string | undefined {
  const text = target.kind === 'tel' ? `+${target.number}` : target.user;
  return /^\+([1-9][0-9]{2,14})$/.exec(text)?.[1];
}
