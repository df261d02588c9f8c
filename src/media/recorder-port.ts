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
   * Receives an RTP packet that is being sent: its own audio or relayed audio, which may be up to a
   * second ahead of the clock. `audio` is reused.
   */
  say(audio: Uint8Array, codec: Codec, timestamp: number): void;
  /**
   * Ends the tick. `timestamp` is that of our own clock in this tick, and tells where relayed audio
   * belongs.
   */
  tick(timestamp: number): void;
  /** The far end began to press a key `agoMs` ago. */
  beginKey(agoMs: number): void;
  /** The far end has released the key. */
  endKey(): void;
  pause(): void;
  resume(): void;
  /** Ends the recording and reports it. Idempotent. */
  stop(reason: RecordingStop): void;
  /** Ends the recording because of a bug in it. The call continues. */
  fail(): void;
  /** True once the recording has stopped or failed. It then needs no more audio. */
  readonly isOver: boolean;
};

export type CreateRecorder = (
  start: RecordingStart,
  report: (report: RecordingReport) => void,
) => CallRecorder;

/** The recorders of a media worker. */
export type Recorders = {
  readonly create: CreateRecorder;
  /** Passes on what has been collected. Called once after all sessions' ticks. */
  tick(): void;
  /** Connects to a recording thread, which replaces any earlier one. */
  connect(port: MessagePort): void;
};

/** The recording thread as media workers' handles see it. */
export type RecordingPorts = {
  /** Changes when the thread has died, so that the ports to it are dead. */
  readonly generation: number;
  /**
   * Opens a port to the thread, which must be transferred to one media worker. Starts the thread if
   * it isn't running.
   */
  portForMediaWorker(): MessagePort;
};
