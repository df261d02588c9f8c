// One second of what the far end says, for a bot that does not take it: the oldest gives way, so that what a slow bot hears is
// late by a second and not by ever more.

import { Buffer } from 'node:buffer';

const frameBytes = 160;
const capacity = 50;

export class UnsentFrames {
  readonly #frames = Buffer.alloc(capacity * frameBytes);
  readonly #timestampsMs = new Float64Array(capacity);
  #first = 0;
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** False: the oldest was dropped for it. */
  push(frame: Uint8Array, timestampMs: number): boolean {
    const isFull = this.#count === capacity;
    if (isFull) this.#forgetFirst();
    const at = (this.#first + this.#count) % capacity;
    this.#frames.set(frame, at * frameBytes);
    this.#timestampsMs[at] = timestampMs;
    this.#count += 1;
    return !isFull;
  }

  /** The oldest, while `use` is running; nothing where there is none. */
  shift(use: (frame: Buffer, timestampMs: number) => void): void {
    if (this.#count === 0) return;
    const from = this.#first * frameBytes;
    const timestampMs = this.#timestampsMs[this.#first] ?? 0;
    use(this.#frames.subarray(from, from + frameBytes), timestampMs);
    this.#forgetFirst();
  }

  #forgetFirst(): void {
    this.#first = (this.#first + 1) % capacity;
    this.#count -= 1;
  }
}
