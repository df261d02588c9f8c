// Messages between media workers and the recording thread. A worker sends a few messages a second,
// with the parts of all its recordings that are due.

import type {
  RecordingFault,
  RecordingPause,
  RecordingStart,
} from '../calls/recording/recording.ts';
import type { GapReason } from './recording-metadata.ts';

/** Both channels, interleaved: the left one's sample, the right one's sample, and so on. */
export const channelCount = 2;
export const sampleRateHz = 8_000;
export const samplesPerMs = sampleRateHz / 1_000;
/** What silence is in µ-law. */
export const silentSample = 0xff;

/**
 * A record in the spool has this many bytes before its payload, and at most so many after it.
 * Audio is posted with that much room around it, so that the thread needn't copy it.
 */
export const recordHeaderBytes = 16;
export const recordTailBytes = 16;

/** Why a recording ended. `incomplete`: before its call did, or nobody knows. */
export type RecordingEnd = { readonly incomplete?: RecordingFault };

/**
 * One part of a recording. `at` counts samples from the recording's first. Parts of one recording
 * come in order, without overlap: audio and gaps, interrupted by pauses. The array of a part that
 * is passed on belongs to its owner, who uses it again.
 */
export type RecordingPart =
  | { readonly kind: 'audio'; readonly at: number; readonly audio: Uint8Array }
  | {
      readonly kind: 'gap';
      readonly at: number;
      readonly until: number;
      readonly reason: GapReason;
    }
  | { readonly kind: 'pause'; readonly at: number; readonly by: RecordingPause }
  | { readonly kind: 'resume'; readonly at: number }
  | { readonly kind: 'end'; readonly at: number; readonly end: RecordingEnd };

/** Every part but audio. */
export type RecordingMark = Exclude<RecordingPart, { kind: 'audio' }>;

/** Audio in one of the message's blocks. `start` is where the room for its record begins. */
export type PostedAudio = {
  readonly kind: 'audio';
  readonly at: number;
  readonly block: number;
  readonly start: number;
  readonly bytes: number;
};

export type BeginPart = {
  readonly kind: 'begin';
  readonly start: RecordingStart;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
};

/** `id` identifies the recording among those of one port. */
export type PartOf = {
  readonly id: number;
  readonly part: BeginPart | RecordingMark | PostedAudio;
};

export type ToRecordingThread = {
  readonly parts: readonly PartOf[];
  /** What the parts and the blocks count as, in the bound of the worker. */
  readonly bytes: number;
  /** Transferred with the message. */
  readonly blocks: readonly Uint8Array<ArrayBuffer>[];
};

export type FromRecordingThread =
  /** The spool has accepted the beginning. */
  | { readonly kind: 'begun'; readonly id: number }
  /** The recording has failed, and its further parts are ignored. */
  | { readonly kind: 'failed'; readonly id: number; readonly reason: RecordingFault }
  /** A message with this many bytes has been handled. Its blocks return. */
  | {
      readonly kind: 'handled';
      readonly bytes: number;
      readonly blocks: readonly Uint8Array<ArrayBuffer>[];
    };
