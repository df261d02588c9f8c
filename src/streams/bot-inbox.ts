// Reads a bot's messages, within limits, and applies them to the playout queue. Invalid messages
// are counted and ignored, so they can't end the call.

import { Buffer } from 'node:buffer';
import type { PlayoutQueue } from '../media/playout/playout-queue.ts';
import type { StreamSink } from '../media/stream-port.ts';
import { readBotMessage } from './stream-messages.ts';

/**
 * The rate limit is 500 messages a second, with bursts of up to 10 s worth. We need the bursts
 * because bots usually send a whole answer in one go, split into 200 ms pieces with a mark each.
 */
const messagesPerTick = 10;
const maxBurst = 5_000;
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
  #allowance = maxBurst;
  ignored = 0;
  bytesReceived = 0;

  constructor(streamSid: string, queue: PlayoutQueue, sink: InboxSink) {
    this.#streamSid = streamSid;
    this.#queue = queue;
    this.#sink = sink;
  }

  tick(): void {
    this.#allowance = Math.min(maxBurst, this.#allowance + messagesPerTick);
  }

  receive(text: string): void {
    if (this.#allowance <= 0) {
      this.#ignore('more than 500 messages a second');
      return;
    }
    this.#allowance -= 1;
    const message = readBotMessage(text, this.#streamSid);
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

  receiveBinary(): void {
    this.#ignore('binary frame');
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

/** Decodes base64. The result is valid until the next call to `decode`. */
function decode(payload: string): Uint8Array {
  if (payload.length > scratchBytes) return Buffer.from(payload, 'base64');
  return scratch.subarray(0, scratch.write(payload, 'base64'));
}
