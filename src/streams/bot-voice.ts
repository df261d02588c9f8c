// Sends a bot its messages over one connection: `connected` and `start`, then a frame every 20 ms,
// and in between what happens in the call. A bot that reads slowly misses the oldest audio, and
// nothing else.

import type { StreamSettings } from '../calls/stream/stream.ts';
import type { StreamLink } from './stream-link.ts';
import { connectedMessage, MessageWriter } from './stream-messages.ts';

const frameMs = 20;
const frameBytes = 160;
/** One second of frames. */
const unsentCapacity = 50;

type BotLink = Pick<StreamLink, 'isFull' | 'send'>;

export type VoiceCounts = { framesSent: number; framesDropped: number };

export class BotVoice {
  readonly #link: BotLink;
  readonly #writer: MessageWriter;
  readonly #counts: readonly VoiceCounts[];
  readonly #frame = Buffer.alloc(frameBytes);
  #unsent: UnsentFrames | undefined;
  #elapsedMs = 0;

  /** Every object in `counts` is incremented. */
  constructor(link: BotLink, settings: StreamSettings, counts: readonly VoiceCounts[]) {
    this.#link = link;
    this.#writer = new MessageWriter(settings);
    this.#counts = counts;
  }

  begin(customParameters: Readonly<Record<string, string>>): void {
    this.#link.send(connectedMessage);
    this.#link.send(this.#writer.start(customParameters));
  }

  /**
   * Sends a frame, or keeps it while the link is full. The timestamp also advances for dropped
   * frames, so the bot can see the gap.
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
    this.#send(this.#frame, timestampMs);
  }

  tell(write: (writer: MessageWriter) => string): void {
    this.#link.send(write(this.#writer));
  }

  #sendUnsent(): void {
    while (this.#unsent?.isEmpty === false && !this.#link.isFull) {
      this.#unsent.shift((frame, timestampMs) => this.#send(frame, timestampMs));
    }
  }

  #send(frame: Buffer, timestampMs: number): void {
    this.#link.send(this.#writer.media(frame, timestampMs));
    this.#count('framesSent');
  }

  #count(what: keyof VoiceCounts): void {
    for (const counts of this.#counts) counts[what] += 1;
  }
}

/**
 * Keeps one second of what the far end says, for a bot that does not read it. A new frame replaces
 * the oldest one, so a slow bot hears audio one second late instead of ever later.
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
   * Removes the oldest frame and passes it to `use`, during which it stays valid. Does nothing if
   * no frame waits.
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
