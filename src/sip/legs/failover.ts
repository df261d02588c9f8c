// Decides whether a call may try the next gateway. That's allowed if nobody can have been reached,
// and the fault lies with the gateway or the path to it. A 4xx or 6xx response is about the number
// or the person, so another gateway would only ring the same person again.

import type { LegFailure } from '../../calls/ports.ts';

/** Failure of a single attempt, with more details than `LegFailure`. */
export type AttemptFailure = LegFailure & {
  /** True if nothing was sent: the engine rejected the request, or the name does not resolve. */
  readonly notSent?: true;
};

/** @param hasRung true if any provisional response other than 100 has arrived */
export function mayFailOver(failure: AttemptFailure, hasRung: boolean): boolean {
  if (hasRung) return false;
  const status = failure.sipStatus ?? 0;
  const isServerFailure = status >= 500 && status <= 599;
  switch (failure.kind) {
    case 'response':
      return isServerFailure;
    // The stack generates these responses after 64*T1 of silence, for closed ports, and for names
    // that don't resolve.
    case 'stack':
      return status === 408 || isServerFailure;
    // A broken engine connection doesn't qualify, because the INVITE may have been sent and a phone
    // may be ringing.
    case 'transport':
      return failure.notSent === true;
    case 'unusable':
    case 'cancelled':
    case 'suppressed':
    case 'outside-hours':
      return false;
  }
}

/**
 * Whether the gateway didn't respond at all, in which case the failure counts as a failed probe.
 */
export function isSilence({ kind, sipStatus }: AttemptFailure): boolean {
  return kind === 'stack' && (sipStatus === 408 || sipStatus === 503);
}

/**
 * Returns how long the gateway asks for no more calls. No other status than 503 means that the
 * gateway as a whole doesn't want calls (RFC 3261, section 21.5.4).
 */
export function pauseOf({ sipStatus, facts }: AttemptFailure): number | undefined {
  return sipStatus === 503 ? facts?.retryAfterS : undefined;
}

/**
 * Parses a Retry-After header, e.g. `120 (in maintenance);duration=3600` (RFC 3261, section 20.33).
 * @returns undefined if the header doesn't start with a number
 */
export function retryAfterSeconds(header: string | undefined): number | undefined {
  const digits = /^\s*(\d{1,9})(?:\s|\(|;|$)/.exec(header ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}
