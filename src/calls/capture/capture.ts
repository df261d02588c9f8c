// What is kept of a call for people who inspect it, in addition to its events: the SIP messages,
// how loud both sides were, and the notes of what its bot, its commands and its transcript did.

import type { CallId } from '../contract/identity.ts';

/** A SIP message as it was on the wire, or as the engine reports it. */
export type SipMessage = {
  readonly at: Date;
  readonly isOurs: boolean;
  readonly transport: string;
  /** The address of the sender. Empty if the engine made the message up. */
  readonly address: string;
  readonly port: number;
  readonly text: string;
};

/** Receives SIP messages from the SIP port. Messages of calls that are not followed are ignored. */
export type SipCapture = {
  /**
   * Follows an INVITE by its Call-ID. A call may have several INVITEs. `legId`: the second leg that
   * the INVITE belongs to, if any.
   */
  follow(callId: CallId, sipCallId: string, legId?: string): void;
  add(message: SipMessage): void;
};

/**
 * The loudness of both sides from the answer on: the loudest sample of each stretch of time, 0 to
 * 127, logarithmic as in G.711. It holds no audio.
 */
export type AudioEnvelope = {
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly stepMs: number;
  /** Audio from the far end. */
  readonly heard: Uint8Array;
  /** Audio to the far end. */
  readonly said: Uint8Array;
  /** Notes of the media worker for the same time. */
  readonly notes?: CallNotesView;
};

/** Instants are milliseconds since 1970. */
export type CallNote =
  /** The bot set a mark. It gets the mark back when everything before it was played or cleared. */
  | {
      readonly kind: 'mark';
      readonly at: number;
      readonly name: string;
      readonly returnedAt?: number;
    }
  /** The bot cleared its audio that was not played yet. */
  | { readonly kind: 'clear'; readonly at: number; readonly droppedMs: number }
  /** Speech-to-text understood these words, which were said at this time. */
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
      /** Text for people, without parts that may be secret. */
      readonly what: string;
      /** The app that sent the command, or the interface if the sender is not known. */
      readonly by: string;
      readonly commandId?: string;
      readonly tookMs: number;
      /** Why the command was refused. */
      readonly refusal?: string;
    };

/**
 * What speech-to-text understood, timed by the clock of detection: a word, or the smallest unit for
 * which the provider gives a time.
 */
export type HeardWords = {
  readonly text: string;
  readonly fromMs: number;
  readonly untilMs: number;
};

export type CallNotesView = {
  readonly notes: readonly CallNote[];
  /** The number of notes that were dropped because there was no room. */
  readonly left: number;
};
