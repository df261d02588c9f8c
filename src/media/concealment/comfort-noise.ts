// Comfort noise (RFC 3389): what to hear while a far end that suppresses silence sends nothing. We
// use the packet's level, but not its spectrum, because that only serves the comfort of people, and
// bots and detection only need to know that the line is open.

import { pausedSample } from '../rtp/jitter-buffer.ts';

/** The amplitude of 0 dBov: a square wave at µ-law's overload (RFC 3389, section 3.1). */
const overload = 32_124;
/** Louder noise isn't comfort noise, so a far end can't make a bot hear a roar. */
const maxDbov = -30;

export class ComfortNoise {
  /** Samples are spread evenly between this and its opposite. 0 before the first packet. */
  #amplitude = 0;
  #state = 1;

  /** Takes the level from a packet's payload, whose first byte is the level in -dBov. */
  setLevel(packet: Uint8Array, start: number, end: number): void {
    // An empty payload is invalid, and says nothing about the level.
    if (start >= end) return;
    const dbov = Math.min(maxDbov, -((packet[start] as number) & 0x7f));
    this.#amplitude = overload * Math.sqrt(3) * 10 ** (dbov / 20);
  }

  /** Forgets the level, because another sender follows. */
  reset(): void {
    this.#amplitude = 0;
  }

  /** Replaces the samples of a frame that the far end didn't send. */
  fill(frame: Int16Array): void {
    const first = frame.indexOf(pausedSample);
    if (first < 0) return;
    for (let index = first; index < frame.length; index += 1) {
      if (frame[index] === pausedSample) frame[index] = this.#next();
    }
  }

  #next(): number {
    // A linear congruential generator (Numerical Recipes), random enough to the ear.
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) | 0;
    return Math.round((this.#state / 2 ** 31) * this.#amplitude);
  }
}
