// Connecting the person of a call to an agent, in the terms of the call. bridge: a second leg is
// placed and the gateway relays the audio. refer: the carrier of the first leg is asked to call the
// agent (RFC 3515).

import type { CallOutcome } from '../contract/call-words.ts';
import type { DialTarget } from '../target/dial-target.ts';

export const transferModes = ['bridge', 'refer'] as const;
export type TransferMode = (typeof transferModes)[number];

/**
 * When a planned transfer begins. answered: at the 200 OK. person: when detection finds a person.
 */
export const transferStarts = ['answered', 'person'] as const;
export type TransferStart = (typeof transferStarts)[number];

/** What happens to the call if the transfer fails and no bot has a stream. */
export const transferFallbacks = ['hangup', 'stay'] as const;
export type TransferFallback = (typeof transferFallbacks)[number];

export const defaultTransferTimeoutMs = 30_000;

/** A checked request for a transfer. */
export type TransferRequest = {
  readonly to: DialTarget;
  /**
   * The trunk of the second leg. Omitted for a direct `sip:` call. A referral uses the trunk of the
   * call.
   */
  readonly trunk?: string;
  readonly mode: TransferMode;
  /**
   * Bridge: the longest time until the second leg is answered, including the wait for its trunk.
   * Referral: the longest time until its end is reported.
   */
  readonly timeoutMs: number;
  /** User part of the caller ID that the second leg shows. */
  readonly caller: string;
  /** Further headers of the INVITE or REFER. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the bot goes on hearing the person from the INVITE on and after the answer. */
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

/** How far the audio of a second leg has come. */
export type BridgePhase = 'ringing' | 'early' | 'answered';

/** What the bot is notified of after a failed transfer. */
export type TransferFailure = {
  readonly to: string;
  readonly mode: TransferMode;
  readonly outcome: CallOutcome;
  readonly reason: string;
  readonly sipStatus?: number;
};
