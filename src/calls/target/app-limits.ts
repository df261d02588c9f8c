// What an app may dial, and how much. Guards against toll fraud with stolen credentials. Pure.

import type { DialoutRequest, DialTarget } from '../call-types.ts';

export type AppLimits = {
  /** Prefixes of allowed numbers, country code first. Default: any number is allowed. */
  readonly allowedPrefixes?: readonly string[];
  /** Prefixes of denied numbers. They override the allowed ones. */
  readonly deniedPrefixes?: readonly string[];
  /** Calls that are accepted and not ended. Calls that wait in the queue count too. */
  readonly callsAtOnce?: number;
  /** Calls accepted on one day in UTC. */
  readonly callsPerDay?: number;
};

/** Returns every target that a request would call. Each of them must be allowed. */
export function targetsOf({
  target,
  bridge,
}: Pick<DialoutRequest, 'target' | 'bridge'>): readonly DialTarget[] {
  return bridge === undefined ? [target] : [target, bridge.to];
}

/**
 * Whether the limits allow a target. With prefixes, only a global number can be judged, so any
 * other target is refused.
 */
export function mayDial(limits: AppLimits | undefined, target: DialTarget): boolean {
  const { allowedPrefixes, deniedPrefixes } = limits ?? {};
  if (allowedPrefixes === undefined && deniedPrefixes === undefined) return true;
  const number = globalNumberOf(target);
  if (number === undefined) return false;
  const begins = (prefix: string) => number.startsWith(prefix);
  return (allowedPrefixes?.some(begins) ?? true) && deniedPrefixes?.some(begins) !== true;
}

/**
 * Returns the global number of a target. For a `sip:` target it is the user part, whatever the
 * host: a trunk dials it, and so may any exchange. No country code begins with 0. Numbers such as
 * `0011900…` and `00900…` only look like one, and would pass every list of prefixes.
 */
function globalNumberOf(target: DialTarget): string | undefined {
  const text = target.kind === 'tel' ? `+${target.number}` : target.user;
  return /^\+([1-9][0-9]{2,14})$/.exec(text)?.[1];
}
