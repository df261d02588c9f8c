// The media worker's interface to a bot's stream, which src/streams implements. The stream receives
// the far end's audio, and writes the bot's audio to the playout queue. It runs on the worker's own
// thread.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { StreamReport, StreamSettings } from '../calls/stream/stream.ts';
import type { StreamStop } from '../calls/stream/stream-reasons.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { PlayoutQueue } from './playout/playout-queue.ts';

export type BotStream = {
  /** Sets up as much of the connection as possible while the phone is ringing. */
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
  /**
   * Notifies the bot that a transfer's second leg has failed, so the call continues with the bot.
   */
  sendTransferFailed(failure: TransferFailure): void;
  /** Returns a mark to the bot. All audio before the mark has been played or dropped. */
  returnMark(name: string): void;
  /** Called once every 20 ms. */
  tick(): void;
  /** Ends the stream. The bot receives `stop`. Idempotent. */
  stop(reason: StreamStop): void;
};

export type StreamSink = {
  readonly statistics: StreamStatistics;
  report(report: StreamReport): void;
  /** Reports a protocol violation by the bot, once for each kind. */
  warn(warning: string): void;
  /** Records the bot's actions, for people who inspect the call. */
  readonly note?: {
    mark(name: string): void;
    clear(droppedMs: number): void;
  };
  /**
   * Reports a bug in our code that was triggered by the bot's messages. Only this call fails
   * instead of every call in the thread.
   */
  defect(error: unknown): void;
};

export type CreateStream = (
  settings: StreamSettings,
  queue: PlayoutQueue,
  sink: StreamSink,
) => BotStream;

/** One worker's statistics. The counters are 0 when the worker starts. */
export type StreamStatistics = {
  open: number;
  framesSent: number;
  /** Frames that we dropped because the bot hadn't read them in time. */
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
