// Reads a bot's messages, within limits, and applies them to the playout queue. Invalid messages
// are counted and ignored, so they can't end the call.

import { Buffer } from 'node:buffer';
import type { PlayoutQueue } from '../media/playout/playout-queue.ts';
import type { StreamSink } from '../media/stream-port.ts';
import { type BotMessage, readBotMessage } from './stream-messages.ts';

/**
 * 8 MiB are about 13 minutes of audio in base64. The queue holds ten, so a bot that fills it at
 * once has the rest for the JSON around its pieces.
 */
export const maxMessageBytes = 8 * 1_024 * 1_024;
/**
 * The rate limit is 500 messages a second, with bursts of up to 10 s worth. We need the bursts
 * because bots usually send a whole answer in one go, split into 200 ms pieces with a mark each.
 */
const messageRate = { perTick: 10, most: 5_000 };
/**
 * 160 kB a second are 500 messages with 20 ms of audio each. Without this limit, a bot could keep
 * the thread busy with long messages, and the clock of the thread's other calls would stop.
 */
const byteRate = { perTick: 3_200, most: maxMessageBytes };
/**
 * Payloads are decoded into one shared buffer. Larger payloads are rare, so they get memory of
 * their own.
 */
const scratchBytes = 256 * 1_024;
const scratch = Buffer.allocUnsafeSlow(scratchBytes);

export type InboxSink = {
  onIgnored(): void;
  /** Called once per kind of violation. */
  warn(warning: string): void;
  readonly note: StreamSink['note'] | undefined;
};

export class BotInbox {
  readonly #streamSid: string;
  readonly #queue: PlayoutQueue;
  readonly #sink: InboxSink;
  readonly #warned = new Set<string>();
  readonly #messages = new Allowance(messageRate);
  readonly #bytes = new Allowance(byteRate);
  ignored = 0;
  bytesReceived = 0;

  constructor(streamSid: string, queue: PlayoutQueue, sink: InboxSink) {
    this.#streamSid = streamSid;
    this.#queue = queue;
    this.#sink = sink;
  }

  tick(): void {
    this.#messages.refill();
    this.#bytes.refill();
  }

  /** Handles a message in UTF-8. */
  receive(data: Buffer): void {
    if (!this.#messages.take(1)) this.#ignore('more than 500 messages a second');
    else if (!this.#bytes.take(data.length)) this.#ignore('more than 160 kB a second');
    else this.#handle(readBotMessage(data.toString('utf8'), this.#streamSid));
  }

  receiveBinary(): void {
    this.#ignore('binary frame');
  }

  #handle(message: BotMessage | undefined): void {
    switch (message?.kind) {
      case 'media':
        this.#play(message.payload);
        break;
      case 'mark':
        this.#sink.note?.mark(message.name);
        if (!this.#queue.mark(message.name)) this.#warn('too many marks queued');
        break;
      case 'clear':
        this.#sink.note?.clear(Math.round(this.#queue.queuedBytes / 8));
        this.#queue.clear();
        break;
      case undefined:
        this.#ignore('unknown message');
        break;
    }
  }

  #play(payload: string): void {
    const audio = decode(payload);
    this.bytesReceived += audio.length;
    if (audio.length === 0) this.#ignore('media without audio');
    else if (!this.#queue.write(audio)) this.#warn('too much audio queued');
  }

  #ignore(warning: string): void {
    this.ignored += 1;
    this.#sink.onIgnored();
    this.#warn(warning);
  }

  #warn(warning: string): void {
    if (this.#warned.has(warning)) return;
    this.#warned.add(warning);
    this.#sink.warn(warning);
  }
}

/** What a bot may still send. Each tick adds `perTick`, up to `most`. */
class Allowance {
  readonly #rate: { readonly perTick: number; readonly most: number };
  #left: number;

  constructor(rate: { readonly perTick: number; readonly most: number }) {
    this.#rate = rate;
    this.#left = rate.most;
  }

  refill(): void {
    this.#left = Math.min(this.#rate.most, this.#left + this.#rate.perTick);
  }

  /** @returns false if less than `count` is left. Then nothing is taken. */
  take(count: number): boolean {
    if (this.#left < count) return false;
    this.#left -= count;
    return true;
  }
}

/** Decodes base64. The result is valid until the next call to `decode`. */
function decode(payload: string): Uint8Array {
  if (payload.length > scratchBytes) return Buffer.from(payload, 'base64');
  return scratch.subarray(0, scratch.write(payload, 'base64'));
}
