// The media worker's interface to a bot's stream, which src/streams implements. The stream receives
// the far end's audio, and writes the bot's audio to the playout queue. It runs in the worker's
// thread.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { StreamReport, StreamSettings } from '../calls/stream/stream.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { PlayoutQueue } from './playout/playout-queue.ts';

export type BotStream = {
  /** Sets up the connection as far as possible while the phone rings. */
  prepare(): void;
  /** Handles the 200 OK. */
  answer(): void;
  /**
   * Receives the far end's next 20 ms in µ-law, or silence if nothing arrived. The array is reused
   * for the next frame of any call.
   */
  hear(frame: Uint8Array): void;
  sendDigit(digit: string): void;
  sendAmd(event: AmdEvent): void;
  /** Notifies the bot that a transfer's second leg failed and the call continues with the bot. */
  sendTransferFailed(failure: TransferFailure): void;
  /** Returns a mark to the bot, because all audio before it has been played or dropped. */
  returnMark(name: string): void;
  /** Called once every 20 ms. */
  tick(): void;
  /** Ends the stream. The bot receives `stop`. Idempotent. */
  stop(reason: string): void;
};

export type StreamSink = {
  readonly statistics: StreamStatistics;
  report(report: StreamReport): void;
  /** Reports a protocol violation by the bot, once for each kind. */
  warn(warning: string): void;
  /** Records what the bot does, for people who inspect the call. */
  readonly note?: {
    mark(name: string): void;
    clear(droppedMs: number): void;
  };
  /**
   * Reports a bug in our code that the bot's messages have triggered. Only this call fails, not
   * every call in the thread.
   */
  defect(error: unknown): void;
};

export type CreateStream = (
  settings: StreamSettings,
  queue: PlayoutQueue,
  sink: StreamSink,
) => BotStream;

/** One worker's statistics. Counters start at 0 with the worker. */
export type StreamStatistics = {
  open: number;
  framesSent: number;
  /** Frames dropped because the bot didn't read them in time. */
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
