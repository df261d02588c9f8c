// The recording of a call, in the vocabulary of calls: what a request asks for, what the media
// receives, and what it reports. The audio itself, its files and their store are in
// `src/recording`.

import type { CallId } from '../contract/identity.ts';

/**
 * When a recording begins. answer: at the answer. person: when detection first finds a person.
 * command: only when a command starts it.
 */
export const recordingBegins = ['answer', 'person', 'command'] as const;
export type RecordingBegin = (typeof recordingBegins)[number];

/** silence: a pause is silence of the same length. cut: a pause is left out. */
export const recordingFills = ['silence', 'cut'] as const;
export type RecordingFill = (typeof recordingFills)[number];

/** A recording as stored in a request, with the defaults of the bot filled in. */
export type RequestedRecording = {
  readonly from: RecordingBegin;
  /** A sound (`sound:<name>` or a URL) that is played to the person before recording begins. */
  readonly announce?: string;
  /** Whether the recording pauses while the far end presses keys. */
  readonly pauseOnKeys: boolean;
  readonly fill: RecordingFill;
  /** Omitted if the gateway's default applies. */
  readonly retentionDays?: number;
  /** Name of the account's key. Omitted if the recording isn't encrypted. */
  readonly key?: string;
  /** Receives a POST once the recording is stored, or has failed. */
  readonly notifyUrl?: string;
  /** Whether the call must end if it can't be recorded. */
  readonly required: boolean;
};

/** Applies to a command's recording if neither the request nor its bot says anything else. */
export const defaultRecording: RequestedRecording = {
  from: 'command',
  pauseOnKeys: false,
  fill: 'silence',
  required: false,
};

/** What the media needs in order to record a call. */
export type RecordingStart = {
  readonly callId: CallId;
  readonly accountId: string;
  readonly botId: string;
  readonly from: RecordingBegin;
  readonly fill: RecordingFill;
  readonly pauseOnKeys: boolean;
  readonly encryption?: RecordingEncryption;
};

/** Made on the main thread before the recording begins. Contains a secret. */
export type RecordingEncryption = {
  readonly keyName: string;
  /** 32 bytes, for AES-256-GCM. */
  readonly contentKey: Uint8Array;
  /**
   * The content key under `SECRETS_KEY`, base64. The spool keeps it until the recording is stored,
   * so that another node can finish the recording.
   */
  readonly sealedContentKey: string;
  /** The content key, encrypted for the account's public key. */
  readonly wrapped: {
    readonly algorithm: 'RSA-OAEP-256' | 'X25519-HKDF-A256GCM';
    /** base64 */
    readonly key: string;
  };
};

/** command: a command asked for it. keys: the far end presses keys. */
export const recordingPauses = ['command', 'keys'] as const;
export type RecordingPause = (typeof recordingPauses)[number];

/** Why the media stopped recording. */
export const recordingStops = ['command', 'call-ended'] as const;
export type RecordingStop = (typeof recordingStops)[number];

/** Why a call couldn't be recorded. */
export const recordingFaults = [
  'disk-full',
  'spool-unusable',
  'disk-slow',
  'thread-failed',
  'key',
  'media-failed',
] as const;
export type RecordingFault = (typeof recordingFaults)[number];

export function isRecordingFault(reason: RecordingFailure): reason is RecordingFault {
  return recordingFaults.some((fault) => fault === reason);
}

/**
 * Why there is no recording, or not a whole one. announcement: its announcement wasn't played to
 * the end. lost: the node died, and its spool can't be read.
 */
export const recordingFailures = [
  ...recordingFaults,
  'announcement',
  'store-unreachable',
  'store-refused',
  'store-full',
  'lost',
] as const;
export type RecordingFailure = (typeof recordingFailures)[number];

/** storing: the call's part is over, and the recording is on its way to the store. */
export const recordingStates = ['recording', 'paused', 'storing', 'stored', 'failed'] as const;

/**
 * The media's reports, in order: `started`, pairs of `paused` and `resumed`, then `stopped` or
 * `failed`. After `failed`, nothing more is recorded; what was written is kept. Offsets and
 * durations count samples from the beginning of the recording.
 */
export type RecordingReport =
  /** The spool has accepted the beginning. `at`: the first sample, in ms since the epoch. */
  | { readonly kind: 'started'; readonly at: number }
  /** A pause for keys is reported before the `dtmf` event of its first key. */
  | { readonly kind: 'paused'; readonly offsetMs: number; readonly by: RecordingPause }
  | { readonly kind: 'resumed'; readonly offsetMs: number }
  | {
      readonly kind: 'stopped';
      readonly reason: RecordingStop;
      readonly durationMs: number;
      /** How much of the duration was paused. */
      readonly pausedMs: number;
    }
  | { readonly kind: 'failed'; readonly reason: RecordingFault; readonly durationMs: number };

/** A command to the media about the recording of its call. A call is recorded at most once. */
export type RecordingCommand =
  | { readonly action: 'start'; readonly recording: RecordingStart }
  | { readonly action: 'pause' | 'resume' }
  | { readonly action: 'stop'; readonly reason: RecordingStop };
