// What is kept of a call for those who look into it, beside its events: the SIP messages, how loud both sides were, and what its bot,
// its commands and its transcript did when.

import type { CallId } from '../contract/identity.ts';

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
  /** An INVITE with this Call-ID is of the call, which may have several. `legId`: of a second leg. */
  follow(callId: CallId, sipCallId: string, legId?: string): void;
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
  /** What the media worker noted meanwhile. */
  readonly notes?: CallNotesView;
};

/** Instants are milliseconds since 1970. */
export type CallNote =
  /** The bot set a mark; it was told when all before it was played, or cleared. */
  | {
      readonly kind: 'mark';
      readonly at: number;
      readonly name: string;
      readonly returnedAt?: number;
    }
  /** The bot took back what was not played yet. */
  | { readonly kind: 'clear'; readonly at: number; readonly droppedMs: number }
  /** Speech-to-text understood this, which was said then. */
  | {
      readonly kind: 'words';
      readonly at: number;
      readonly untilAt: number;
      readonly text: string;
    }
  /** A command came. */
  | {
      readonly kind: 'command';
      readonly at: number;
      /** For people, without what may be secret. */
      readonly what: string;
      /** The app, or the door that does not say who came. */
      readonly by: string;
      readonly commandId?: string;
      readonly tookMs: number;
      /** Why it was not done. */
      readonly refusal?: string;
    };

/** What speech-to-text understood, by the clock of detection: a word, or as much as the provider gave a time. */
export type HeardWords = {
  readonly text: string;
  readonly fromMs: number;
  readonly untilMs: number;
};

export type CallNotesView = {
  readonly notes: readonly CallNote[];
  /** That there was no room for. */
  readonly left: number;
};
