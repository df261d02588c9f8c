// Sends messages to a bot over one connection. It starts with `connected` and `start`, and
// continues with a frame every 20 ms and the call's events in between. If a bot reads slowly, it
// only loses the oldest audio.

import type { StreamSettings } from '../calls/stream/stream.ts';
import type { StreamLink } from './stream-link.ts';
import { connectedMessage, MessageWriter } from './stream-messages.ts';

const frameMs = 20;
const frameBytes = 160;
/** One second of frames. */
const unsentCapacity = 50;

type BotLink = Pick<StreamLink, 'isFull' | 'send'>;

export type SenderCounts = { framesSent: number; framesDropped: number };

export class BotSender {
  readonly #link: BotLink;
  readonly #writer: MessageWriter;
  readonly #counts: readonly SenderCounts[];
  readonly #frame = Buffer.alloc(frameBytes);
  #unsent: UnsentFrames | undefined;
  #elapsedMs = 0;

  /** Increments the counters of every object in `counts`. */
  constructor(link: BotLink, settings: StreamSettings, counts: readonly SenderCounts[]) {
    this.#link = link;
    this.#writer = new MessageWriter(settings);
    this.#counts = counts;
  }

  begin(customParameters: Readonly<Record<string, string>>): void {
    this.#link.send(connectedMessage);
    this.#link.send(this.#writer.start(customParameters));
  }

  /**
   * Sends a frame, or keeps it while the link is full. Even if frames are dropped, timestamps
   * advance, so the bot can see the gap.
   */
  hear(frame: Uint8Array): void {
    const timestampMs = this.#elapsedMs;
    this.#elapsedMs += frameMs;
    this.#sendUnsent();
    if (this.#link.isFull || this.#unsent?.isEmpty === false) {
      this.#unsent ??= new UnsentFrames();
      if (!this.#unsent.push(frame, timestampMs)) this.#count('framesDropped');
      return;
    }
    this.#frame.set(frame);
    this.#sendFrame(this.#frame, timestampMs);
  }

  send(write: (writer: MessageWriter) => string): void {
    this.#link.send(write(this.#writer));
  }

  #sendUnsent(): void {
    while (this.#unsent?.isEmpty === false && !this.#link.isFull) {
      this.#unsent.shift((frame, timestampMs) => this.#sendFrame(frame, timestampMs));
    }
  }

  #sendFrame(frame: Buffer, timestampMs: number): void {
    this.#link.send(this.#writer.media(frame, timestampMs));
    this.#count('framesSent');
  }

  #count(what: keyof SenderCounts): void {
    for (const counts of this.#counts) counts[what] += 1;
  }
}

/**
 * Keeps the far end's audio while the bot isn't reading. Once a full second is unsent, each new
 * frame replaces the oldest one, so a slow bot's backlog never exceeds one second.
 */
class UnsentFrames {
  readonly #frames = Buffer.alloc(unsentCapacity * frameBytes);
  readonly #timestampsMs = new Float64Array(unsentCapacity);
  #first = 0;
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** @returns false if the oldest frame was dropped to make room */
  push(frame: Uint8Array, timestampMs: number): boolean {
    const isFull = this.#count === unsentCapacity;
    if (isFull) this.#forgetFirst();
    const at = (this.#first + this.#count) % unsentCapacity;
    this.#frames.set(frame, at * frameBytes);
    this.#timestampsMs[at] = timestampMs;
    this.#count += 1;
    return !isFull;
  }

  /**
   * Removes the oldest frame, if any, and passes it to `use`. The frame is valid only until `use`
   * returns.
   */
  shift(use: (frame: Buffer, timestampMs: number) => void): void {
    if (this.#count === 0) return;
    const from = this.#first * frameBytes;
    const timestampMs = this.#timestampsMs[this.#first] ?? 0;
    use(this.#frames.subarray(from, from + frameBytes), timestampMs);
    this.#forgetFirst();
  }

  #forgetFirst(): void {
    this.#first = (this.#first + 1) % unsentCapacity;
    this.#count -= 1;
  }
}
