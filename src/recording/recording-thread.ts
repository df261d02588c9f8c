// The thread that writes recordings, as the rest of the process sees it.

import type { RecordingFault } from '../calls/recording/recording.ts';
import type { RecordingPorts } from '../media/recorder-port.ts';
import type { RecordingMetadata } from './recording-metadata.ts';
import type { SpoolHeader } from './thread/spool-header.ts';

/** A recording that is one file in the spool, whole and flushed to the disk. */
export type SpooledRecording = {
  /** Absolute path of the recording's own folder. */
  readonly folder: string;
  readonly callId: string;
  readonly accountId: string;
  readonly botId: string;
  /** The node and start that recorded it. */
  readonly ownerId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly durationMs: number;
  readonly pausedMs: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly keyName?: string;
  readonly incomplete: boolean;
  /** Name of the audio file in `folder`. */
  readonly fileName: string;
  /** Name of the metadata file in `folder`. */
  readonly metadataName: string;
  readonly metadata: RecordingMetadata;
};

/**
 * A folder in the spool that this process isn't recording into.
 * - unfinished: segments that must be finished.
 * - finished: one file, which hasn't been stored (or whose folder hasn't been removed).
 * - unreadable: neither, because the header is missing or damaged. `reason` says more.
 */
export type Leftover = {
  readonly folder: string;
  /** When anything was last written there, in milliseconds since the epoch. */
  readonly changedAt: number;
} & (
  | { readonly state: 'unfinished'; readonly header: SpoolHeader }
  | { readonly state: 'finished'; readonly header: SpoolHeader; readonly spooled: SpooledRecording }
  | { readonly state: 'unreadable'; readonly reason: string }
);

/** Why a recording couldn't be finished. The segments stay where they are. */
export type FinishFault = {
  readonly fault: Extract<RecordingFault, 'disk-full' | 'spool-unusable' | 'key'>;
  /** For the log. */
  readonly detail: string;
};

/**
 * Something that went wrong with a recording of this process. Its segments, if there are any, are
 * left over and can be finished later.
 */
export type SpoolFault = {
  readonly callId: string;
  readonly fault: RecordingFault;
  /** For the log. */
  readonly detail: string;
};

/** Requests reject if the thread dies. A stuck disk delays their answers without a limit. */
export type RecordingThread = RecordingPorts & {
  /** Calls the listener for each recording of this process that has become one file. */
  onFinished(listener: (spooled: SpooledRecording) => void): void;
  onFault(listener: (fault: SpoolFault) => void): void;
  /** Returns the folders that aren't being recorded into or finished, of this and other nodes. */
  leftovers(): Promise<readonly Leftover[]>;
  /**
   * Finishes a leftover. It becomes an incomplete recording unless its end was written.
   * `contentKey` is needed if it's encrypted.
   */
  finish(folder: string, contentKey?: Uint8Array): Promise<SpooledRecording | FinishFault>;
  /** Removes a recording's folder from the spool. */
  remove(folder: string): Promise<void>;
  /** Finishes what has ended, for a few seconds at most. The rest is left over. Idempotent. */
  stop(): Promise<void>;
};
