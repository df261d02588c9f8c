// Messages between media workers and the recording thread. A worker sends one message per tick at
// most, with the parts of all its recordings that are due.

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

/** Why a recording ended. `incomplete`: before its call did, or nobody knows. */
export type RecordingEnd = { readonly incomplete?: RecordingFault };

/**
 * One part of a recording. `at` counts samples from the recording's first. Parts of one recording
 * come in order, without overlap: audio and gaps, interrupted by pauses.
 */
export type RecordingPart =
  | { readonly kind: 'audio'; readonly at: number; readonly audio: Uint8Array<ArrayBuffer> }
  | {
      readonly kind: 'gap';
      readonly at: number;
      readonly until: number;
      readonly reason: GapReason;
    }
  | { readonly kind: 'pause'; readonly at: number; readonly by: RecordingPause }
  | { readonly kind: 'resume'; readonly at: number }
  | { readonly kind: 'end'; readonly at: number; readonly end: RecordingEnd };

export type BeginPart = {
  readonly kind: 'begin';
  readonly start: RecordingStart;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
};

/** `id` identifies the recording among those of one port. */
export type PartOf = { readonly id: number; readonly part: BeginPart | RecordingPart };

export type ToRecordingThread = {
  readonly parts: readonly PartOf[];
  /** What the parts count as, in the bound of the worker. */
  readonly bytes: number;
};

export type FromRecordingThread =
  /** The spool has accepted the beginning. */
  | { readonly kind: 'begun'; readonly id: number }
  /** The recording has failed, and its further parts are ignored. */
  | { readonly kind: 'failed'; readonly id: number; readonly reason: RecordingFault }
  /** A message with this many bytes has been handled. */
  | { readonly kind: 'handled'; readonly bytes: number };
