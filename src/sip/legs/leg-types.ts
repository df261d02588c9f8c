// What a leg needs and tells, and what it has on the wire.

import type { DialTarget } from '../../calls/call-types.ts';
import type { SipCapture } from '../../calls/capture.ts';
import type { StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { Clock, LegEvent } from '../../calls/ports.ts';
import type { Logger } from '../../lib/logger.ts';
import type { SipLimits } from '../engine/sip-limits.ts';
import type { AckFunction, SentRequest } from '../engine/srf-types.ts';
import type { AttemptFailure } from './failover.ts';

/** Hears more of a failure than the call does. */
export type AttemptObserver = { observe(event: AttemptEvent): void };
type AttemptEvent =
  | Exclude<LegEvent, { readonly kind: 'failed' | 'attemptFailed' }>
  | { readonly kind: 'failed'; readonly failure: AttemptFailure };

export type LegDependencies = {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: SipLimits;
  /**
   * The engine went away with this leg on it: another process may still end it when the engine is back. Resolves when it is ended,
   * or given up.
   */
  readonly onAbandoned: (leg: StoredLeg) => Promise<void>;
  /** For those who look at what passes. */
  readonly capture?: Pick<SipCapture, 'follow'> | undefined;
  /** As the far end of a trunk's calls is asked to write it. */
  readonly referTo: (target: DialTarget, trunk: string | undefined) => string;
};

export type Wire =
  | { readonly kind: 'idle' }
  /** Given to the engine, which has not said yet that it was sent. */
  | { readonly kind: 'inviting' }
  | { readonly kind: 'pending'; readonly invite: SentRequest }
  | { readonly kind: 'answered'; readonly dialogId: string; readonly ack: AckFunction }
  | { readonly kind: 'confirmed'; readonly dialogId: string }
  | { readonly kind: 'closing' }
  | { readonly kind: 'released' };
