// The media worker's interface to the recording of calls, which src/recording/audio implements. The
// recorder collects both sides of a call on the worker's playout clock, and passes them to the
// thread that writes them. It doesn't touch the disk.

import type { MessagePort } from 'node:worker_threads';
import type {
  RecordingReport,
  RecordingStart,
  RecordingStop,
} from '../calls/recording/recording.ts';
import type { Codec } from './g711.ts';

export type CallRecorder = {
  /**
   * Receives what was heard in this tick, as 160 µ-law samples. Call it once per tick, before
   * `tick`. The array is reused.
   */
  hear(frame: Uint8Array): void;
  /**
   * Receives the audio of a packet that is being sent, from `start` to the packet's end.
   * `timestamp` is the packet's, so that relayed audio finds its place: it may be up to a second
   * ahead of the clock. The array is reused.
   */
  say(packet: Uint8Array, start: number, codec: Codec, timestamp: number): void;
  /** Ends the tick. */
  tick(): void;
  /** Takes note that the far end began to press a key `agoMs` ago. */
  beginKey(agoMs: number): void;
  /** Takes note that the far end has released the key. */
  endKey(): void;
  pause(): void;
  resume(): void;
  /** Ends the recording and reports it. Idempotent. */
  stop(reason: RecordingStop): void;
  /** Ends the recording because recording it failed. The call continues. */
  fail(): void;
  /** True once the recording has stopped or failed. It then needs no more audio. */
  readonly isOver: boolean;
};

/**
 * Creates a recorder whose first sample belongs to the next tick. An RTP packet of that tick has
 * this timestamp.
 */
export type CreateRecorder = (
  start: RecordingStart,
  timestamp: number,
  report: (report: RecordingReport) => void,
) => CallRecorder;

/** The recorders of a media worker. */
export type Recorders = {
  readonly create: CreateRecorder;
  /** Passes on what has been collected. Called after the ticks of all sessions. */
  tick(): void;
  /** Connects to a recording thread, which replaces the earlier one. */
  connect(port: MessagePort): void;
};

/** The recording thread, as the handles of media workers see it. */
export type RecordingPorts = {
  /** Changes when the thread has died, because the ports to it are dead as well. */
  readonly generation: number;
  /**
   * Opens a port to the thread, which must be transferred to one media worker. Starts the thread if
   * it isn't running.
   */
  portForMediaWorker(): MessagePort;
};
