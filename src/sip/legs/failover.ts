// When a call may go on to the next gateway: only where no person can have been reached, and the gateway itself, or the way to
// it, is what failed. A 4xx or 6xx is an answer about the number or the person, and another gateway would ring it twice.

import type { LegFailure } from '../../calls/ports.ts';

/** What an attempt tells of its failure beyond the port's words. */
export type AttemptFailure = LegFailure & {
  /** The engine refused the request: nothing has left. */
  readonly notSent?: true;
  /** Seconds, of a 503. */
  readonly retryAfterS?: number;
};

/** @param hasRung any provisional response but 100 has come. */
export function mayFailOver(failure: AttemptFailure, hasRung: boolean): boolean {
  if (hasRung) return false;
  const status = failure.sipStatus ?? 0;
  const isServerFailure = status >= 500 && status <= 599;
  switch (failure.kind) {
    case 'response':
      return isServerFailure;
    // Silence for 64 * T1, a closed port, a name that does not resolve.
    case 'stack':
      return status === 408 || isServerFailure;
    // A broken connection to the engine is not among them: the INVITE may have left with it, and a phone may ring.
    case 'transport':
      return failure.notSent === true;
    case 'unusable':
    case 'cancelled':
      return false;
  }
}

/** Nothing came back from the gateway, as a probe would say. */
export function isSilence({ kind, sipStatus }: AttemptFailure): boolean {
  return kind === 'stack' && (sipStatus === 408 || sipStatus === 503);
}

/** Of a Retry-After header such as `120 (in maintenance);duration=3600` (RFC 3261, section 20.33). */
export function retryAfterSeconds(header: string | undefined): number | undefined {
  const digits = /^\s*(\d{1,9})(?:\s|\(|;|$)/.exec(header ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}
