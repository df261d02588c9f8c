// A call's capture, which lets people inspect the call. Besides the events, it contains the SIP
// messages, the loudness of both sides, and notes about the bot, the commands and the transcript.

import type { CallId } from '../contract/identity.ts';

/** A SIP message as it was on the wire, or as the engine reported it. */
export type SipMessage = {
  readonly at: Date;
  readonly isOurs: boolean;
  readonly transport: string;
  /** The sender's address. Empty if the engine generated the message. */
  readonly address: string;
  readonly port: number;
  readonly text: string;
};

/**
 * Receives SIP messages from the SIP port. Ignores messages that belong to calls it isn't
 * following.
 */
export type SipCapture = {
  /**
   * Follows an INVITE by its Call-ID. A call may have several INVITEs. `legId` is set if the INVITE
   * belongs to a second leg. Default: the first leg.
   */
  follow(callId: CallId, sipCallId: string, legId?: string): void;
  add(message: SipMessage): void;
};

/**
 * The loudness of both sides from the answer on. Each value is the loudest sample of one step, from
 * 0 to 127 on G.711's logarithmic scale. The envelope doesn't contain any audio.
 */
export type AudioEnvelope = {
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly stepMs: number;
  /** Audio from the far end. */
  readonly heard: Uint8Array;
  /** Audio to the far end. */
  readonly said: Uint8Array;
  /** The media worker's notes about the same period. */
  readonly notes?: CallNotesView;
};

/** A note in a capture. Instants are milliseconds since 1970. */
export type CallNote =
  /**
   * The bot set a mark. It gets the mark back once all audio before it has been played or cleared.
   */
  | {
      readonly kind: 'mark';
      readonly at: number;
      readonly name: string;
      readonly returnedAt?: number;
    }
  /** The bot cleared its unplayed audio. */
  | { readonly kind: 'clear'; readonly at: number; readonly droppedMs: number }
  /** Speech-to-text recognised these words, spoken from `at` until `untilAt`. */
  | {
      readonly kind: 'words';
      readonly at: number;
      readonly untilAt: number;
      readonly text: string;
    }
  /** A command was executed or rejected. */
  | {
      readonly kind: 'command';
      readonly at: number;
      /** Text for people, without any parts that may be secret. */
      readonly what: string;
      /** The app that sent the command, or the interface if we don't know the app. */
      readonly by: string;
      readonly commandId?: string;
      readonly tookMs: number;
      /** Why the command was rejected. */
      readonly refusal?: string;
    };

/**
 * Words that speech-to-text recognised, timed by the detection clock: one word, or the smallest
 * unit for which the provider reports times.
 */
export type HeardWords = {
  readonly text: string;
  readonly fromMs: number;
  readonly untilMs: number;
};

export type CallNotesView = {
  readonly notes: readonly CallNote[];
  /** Number of notes that were dropped because there was no room for them. */
  readonly left: number;
};
