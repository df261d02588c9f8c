// The media worker's interface to a bot's stream, implemented by src/streams. The stream receives
// what the far end says, and fills the queue of what is to be played. All of it runs in the
// worker's thread.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { StreamReport, StreamSettings } from '../calls/stream/stream.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { PlayoutQueue } from './playout/playout-queue.ts';

export type BotStream = {
  /** Prepares the connection as far as possible while the phone rings. */
  prepare(): void;
  /** Reports the 200 OK. */
  answer(): void;
  /**
   * Passes 20 ms of the far end in µ-law, silence if nothing was received. The array is reused for
   * the next frame of any call.
   */
  hear(frame: Uint8Array): void;
  tellDigit(digit: string): void;
  tellAmd(event: AmdEvent): void;
  /** Reports that the second leg of a transfer failed: the call goes on with the bot. */
  tellTransferFailed(failure: TransferFailure): void;
  /** Reports that all audio before the mark was played. */
  tellMark(name: string): void;
  /** Reports the end of a tick. */
  tick(): void;
  /**
   * Ends the stream because the call ended or the stream is no longer wanted. The bot receives
   * `stop`. Idempotent.
   */
  stop(reason: string): void;
};

export type StreamSink = {
  readonly statistics: StreamStatistics;
  report(report: StreamReport): void;
  /** Logs what a bot does wrong, once for each kind. */
  warn(warning: string): void;
  /** Records what the bot did when, for people who inspect the call. */
  readonly note?: {
    mark(name: string): void;
    clear(droppedMs: number): void;
  };
  /**
   * Reports a defect that a bot's message exposed. It ends this call only, not the other calls of
   * the thread.
   */
  defect(error: unknown): void;
};

export type CreateStream = (
  settings: StreamSettings,
  queue: PlayoutQueue,
  sink: StreamSink,
) => BotStream;

/** Statistics of one worker. Counters start with the worker. */
export type StreamStatistics = {
  open: number;
  framesSent: number;
  /** Frames of the far end that the bot did not read in time. */
  framesDropped: number;
  bytesReceived: number;
  messagesIgnored: number;
  reconnects: number;
};

export function createStreamStatistics(): StreamStatistics {
  return {
    open: 0,
    framesSent: 0,
    framesDropped: 0,
    bytesReceived: 0,
    messagesIgnored: 0,
    reconnects: 0,
  };
}
