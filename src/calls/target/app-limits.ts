// App limits restrict which numbers an app may dial and how often, as a guard against toll fraud
// with stolen credentials. The functions are pure.

import type { DialoutRequest, DialTarget } from '../call-types.ts';

export type AppLimits = {
  /**
   * Prefixes of allowed numbers, starting with the country code. Default: any number is allowed.
   */
  readonly allowedPrefixes?: readonly string[];
  /** Prefixes of denied numbers. These override the allowed prefixes. */
  readonly deniedPrefixes?: readonly string[];
  /** Maximum number of accepted calls that have not ended, including queued calls. */
  readonly callsAtOnce?: number;
  /** Maximum number of calls accepted on one UTC day. */
  readonly callsPerDay?: number;
};

/** Returns every target that a request may dial. The app needs permission for each of them. */
export function targetsOf({
  target,
  bridge,
}: Pick<DialoutRequest, 'target' | 'bridge'>): readonly DialTarget[] {
  return bridge === undefined ? [target] : [target, bridge.to];
}

/**
 * Whether the limits allow a target. Prefixes can only be compared with a global number, so if the
 * app has any prefixes, every target without a global number is rejected.
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
 * Returns the target's global number. For a `sip:` target, that's the user part, regardless of the
 * host, because a trunk or any PBX may dial it. Country codes never start with 0, so we don't
 * accept a leading 0 either. Otherwise numbers such as `+0011900…` and `+00900…` would slip past
 * every list of prefixes.
 */
function globalNumberOf(target: DialTarget): string | undefined {
  if (target.kind === 'local') return undefined;
  const text = target.kind === 'tel' ? `+${target.number}` : target.user;
  return /^\+([1-9][0-9]{2,14})$/.exec(text)?.[1];
}
