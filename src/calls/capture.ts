// What is kept of a call for those who look into it, beside its events: the SIP messages, and how loud both sides were.

import type { CallId } from './contract/identity.ts';

/** As it was on the wire, or as the engine says that it was. */
export type SipMessage = {
  readonly at: Date;
  readonly isOurs: boolean;
  readonly transport: string;
  /** Of the sender; empty where the engine made the message up. */
  readonly address: string;
  readonly port: number;
  readonly text: string;
};

/** Told by the SIP port; what is not of a call that is followed is nothing of ours. */
export type SipCapture = {
  /** An INVITE with this Call-ID is of the call; it may have several. */
  follow(callId: CallId, sipCallId: string): void;
  add(message: SipMessage): void;
};

/** From the answer on: for each stretch of time the loudest sample, 0 to 127, logarithmic as in G.711; no audio. */
export type AudioEnvelope = {
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly stepMs: number;
  /** From the far end. */
  readonly heard: Uint8Array;
  /** To the far end. */
  readonly said: Uint8Array;
};
