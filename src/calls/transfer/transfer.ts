// Transfers connect the person in a call to an agent. bridge: the gateway places a second leg and
// relays the audio. refer: the gateway asks the first leg's carrier to call the agent (RFC 3515).

import type { CallerDetails } from '../caller/caller-members.ts';
import type { CallOutcome } from '../contract/call-words.ts';
import type { DialTarget } from '../target/dial-target.ts';

export const transferModes = ['bridge', 'refer'] as const;
export type TransferMode = (typeof transferModes)[number];

/**
 * When a planned transfer starts. answered: at the 200 OK. person: when detection finds a person.
 */
export const transferStarts = ['answered', 'person'] as const;
export type TransferStart = (typeof transferStarts)[number];

/**
 * What happens to the call if the transfer fails and there's no bot or plan to continue the call.
 */
export const transferFallbacks = ['hangup', 'stay'] as const;
export type TransferFallback = (typeof transferFallbacks)[number];

export const defaultTransferTimeoutMs = 30_000;

/** A transfer request that has passed its checks. */
export type TransferRequest = CallerDetails & {
  readonly to: DialTarget;
  /**
   * The second leg's trunk. Omitted for a direct `sip:` call, and for a referral, which uses the
   * call's own trunk.
   */
  readonly trunk?: string;
  readonly mode: TransferMode;
  /**
   * Bridge: maximum time until the second leg is answered, including the wait for its trunk.
   * Referral: maximum time until its result is reported.
   */
  readonly timeoutMs: number;
  /** User part of the caller ID shown on the second leg. */
  readonly caller: string;
  /** Additional headers for the INVITE or REFER. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the bot keeps hearing the person during the transfer and after the answer. */
  readonly keepStream: boolean;
  readonly onFailure: TransferFallback;
};

/** A transfer planned by a dial-out request. */
export type TransferPlan = TransferRequest & { readonly on: TransferStart };

/** One transfer of a call. A call has at most one at a time. */
export type Transfer = TransferRequest & {
  /** Id of the second leg. */
  readonly legId: string;
};

/** The phase of a second leg. It determines what the two ends hear. */
export type BridgePhase = 'ringing' | 'early' | 'answered';

/** Tells the bot about a failed transfer. */
export type TransferFailure = {
  readonly to: string;
  readonly mode: TransferMode;
  readonly outcome: CallOutcome;
  readonly reason: string;
  readonly sipStatus?: number;
};
