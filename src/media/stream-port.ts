// The media worker's view of a bot's stream: src/streams implements it. What is heard goes in, what is to be played comes out,
// all within the worker's thread.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { StreamReport, StreamSettings } from '../calls/stream/stream.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { PlayoutQueue } from './playout/playout-queue.ts';

export type BotStream = {
  /** The phone rings: what can be done before the answer is done. */
  prepare(): void;
  /** The 200 OK is here. */
  answer(): void;
  /** 20 ms of the far end, µ-law, silence where nothing was received. Used again for the next frame of any call. */
  hear(frame: Uint8Array): void;
  tellDigit(digit: string): void;
  tellAmd(event: AmdEvent): void;
  /** The second leg of a transfer came to nothing: the call goes on with the bot. */
  tellTransferFailed(failure: TransferFailure): void;
  /** All before the mark was played. */
  tellMark(name: string): void;
  /** A tick is over. */
  tick(): void;
  /** The call ended, or the stream is not wanted any more: the bot is told. Idempotent. */
  stop(reason: string): void;
};

export type StreamSink = {
  readonly statistics: StreamStatistics;
  report(report: StreamReport): void;
  /** For the log: what a bot does wrong, once for each kind. */
  warn(warning: string): void;
  /** For who looks into the call: what the bot did when. */
  readonly note?: {
    mark(name: string): void;
    clear(droppedMs: number): void;
  };
  /** A defect that a message of a bot brought to light: it ends this call, and not those of the whole thread. */
  defect(error: unknown): void;
};

export type CreateStream = (
  settings: StreamSettings,
  queue: PlayoutQueue,
  sink: StreamSink,
) => BotStream;

/** Of one worker; counters start with it. */
export type StreamStatistics = {
  open: number;
  framesSent: number;
  /** Of the far end, which the bot did not take in time. */
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
