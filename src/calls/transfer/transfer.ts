// Transfers connect the person of a call to an agent. bridge: the gateway places a second leg and
// relays the audio. refer: the gateway asks the carrier of the first leg to call the agent (RFC
// 3515).

import type { CallOutcome } from '../contract/call-words.ts';
import type { DialTarget } from '../target/dial-target.ts';

export const transferModes = ['bridge', 'refer'] as const;
export type TransferMode = (typeof transferModes)[number];

/**
 * When a planned transfer begins. answered: at the 200 OK. person: when detection finds a person.
 */
export const transferStarts = ['answered', 'person'] as const;
export type TransferStart = (typeof transferStarts)[number];

/** What happens to the call if the transfer fails and no bot or plan can continue it. */
export const transferFallbacks = ['hangup', 'stay'] as const;
export type TransferFallback = (typeof transferFallbacks)[number];

export const defaultTransferTimeoutMs = 30_000;

/** A checked request for a transfer. */
export type TransferRequest = {
  readonly to: DialTarget;
  /**
   * The trunk of the second leg. Omitted for a direct `sip:` call, and for a referral, which uses
   * the call's trunk.
   */
  readonly trunk?: string;
  readonly mode: TransferMode;
  /**
   * Bridge: maximum time until the second leg is answered, including the wait for its trunk.
   * Referral: maximum time until its result is reported.
   */
  readonly timeoutMs: number;
  /** User part of the caller ID that the second leg shows. */
  readonly caller: string;
  /** Additional headers of the INVITE or REFER. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the bot keeps hearing the person during the transfer and after the answer. */
  readonly keepStream: boolean;
  readonly onFailure: TransferFallback;
};

/** The transfer that a dial-out request plans. */
export type TransferPlan = TransferRequest & { readonly on: TransferStart };

/** One transfer of a call. A call has at most one at a time. */
export type Transfer = TransferRequest & {
  /** Id of the second leg. */
  readonly legId: string;
};

/** The phase of a second leg, which determines what audio the two ends hear. */
export type BridgePhase = 'ringing' | 'early' | 'answered';

/** Describes a failed transfer to the bot. */
export type TransferFailure = {
  readonly to: string;
  readonly mode: TransferMode;
  readonly outcome: CallOutcome;
  readonly reason: string;
  readonly sipStatus?: number;
};
