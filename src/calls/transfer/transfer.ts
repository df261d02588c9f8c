// Connecting the person of a call to an agent, in the call's words: bridged (a second leg, the audio relayed here) or
// referred (the carrier of the first leg is asked to call them, RFC 3515).

import type { CallOutcome } from '../contract/call-words.ts';
import type { DialTarget } from '../target/dial-target.ts';

export const transferModes = ['bridge', 'refer'] as const;
export type TransferMode = (typeof transferModes)[number];

/** answered: at the 200 OK. person: when detection says that a person is there. */
export const transferStarts = ['answered', 'person'] as const;
export type TransferStart = (typeof transferStarts)[number];

/** What becomes of the call when the transfer fails and no bot has a stream. */
export const transferFallbacks = ['hangup', 'stay'] as const;
export type TransferFallback = (typeof transferFallbacks)[number];

export const defaultTransferTimeoutMs = 30_000;

/** As it was asked for, checked. */
export type TransferRequest = {
  readonly to: DialTarget;
  /** Left out: a direct `sip:` call. Of a referral: the call's own. */
  readonly trunk?: string;
  readonly mode: TransferMode;
  /** Until the second leg is answered, the wait for its trunk included; of a referral, until its end is told. */
  readonly timeoutMs: number;
  /** User part of the caller ID that the second leg shows. */
  readonly caller: string;
  /** More headers of the INVITE or REFER. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The bot goes on hearing the person, before and after. */
  readonly keepStream: boolean;
  readonly onFailure: TransferFallback;
};

/** Of a dial-out request. */
export type TransferPlan = TransferRequest & { readonly on: TransferStart };

/** One transfer of a call; a call has at most one at a time. */
export type Transfer = TransferRequest & {
  /** Names the second leg beside its call. */
  readonly legId: string;
};

/** How far the audio of a second leg has come. */
export type BridgePhase = 'ringing' | 'early' | 'answered';

/** What the bot is told. */
export type TransferFailure = {
  readonly to: string;
  readonly mode: TransferMode;
  readonly outcome: CallOutcome;
  readonly reason: string;
  readonly sipStatus?: number;
};
