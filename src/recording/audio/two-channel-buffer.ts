// The most recent audio of a call's two sides, as rings of µ-law samples. Positions count samples
// from the beginning of the recording.

import { endianness } from 'node:os';
import { alawToMulaw, type Codec } from '../../media/g711.ts';
import { frameSamples } from '../../media/rtp/jitter-buffer.ts';
import { silentSample } from '../recording-messages.ts';

const isLittleEndian = endianness() === 'LE';
/**
 * The left ring stores two seconds, since audio leaves it within a second and the time that it's
 * held back. It's a whole number of frames, so that no frame wraps.
 */
const leftSamples = 100 * frameSamples;
/** The right ring also stores what's ahead of the clock, and so it stores four seconds. */
const rightSamples = 200 * frameSamples;
/** What we send may be this far ahead of the clock. A relay allows one second, plus a packet. */
const maxAheadSamples = 96 * frameSamples;

export class TwoChannelBuffer {
  readonly #left = new Uint8Array(leftSamples).fill(silentSample);
  readonly #right = new Uint8Array(rightSamples).fill(silentSample);
  /** Everything before this position has been taken. */
  #taken = 0;

  /** Writes the left channel's frame at a position that is a whole number of frames. */
  writeLeft(at: number, frame: Uint8Array): void {
    this.#left.set(frame, at % leftSamples);
  }

  /** Writes to the right channel what hasn't been taken, from `start` to the end of the packet. */
  writeRight(at: number, packet: Uint8Array, start: number, codec: Codec): void {
    let from = start;
    let position = at;
    if (position < this.#taken) {
      from += this.#taken - position;
      position = this.#taken;
    }
    const length = packet.length - from;
    if (length <= 0 || position + length > this.#taken + rightSamples) return;
    const slot = position % rightSamples;
    const unwrapped = Math.min(length, rightSamples - slot);
    this.#copyRight(slot, packet, from, from + unwrapped, codec);
    this.#copyRight(0, packet, from + unwrapped, packet.length, codec);
  }

  #copyRight(slot: number, packet: Uint8Array, from: number, until: number, codec: Codec): void {
    if (codec === 'PCMU') {
      this.#right.set(packet.subarray(from, until), slot);
      return;
    }
    for (let index = from; index < until; index += 1) {
      this.#right[slot + index - from] = alawToMulaw[packet[index] as number] as number;
    }
  }

  /** Takes both channels up to the position, interleaved. */
  take(until: number): Uint8Array<ArrayBuffer> {
    const count = until - this.#taken;
    // Writing both bytes of a sample at once takes half the time.
    const pairs = new Uint16Array(count);
    const [left, right] = [this.#left, this.#right];
    let leftSlot = this.#taken % leftSamples;
    let rightSlot = this.#taken % rightSamples;
    for (let at = 0; at < count; ) {
      const run = Math.min(count - at, leftSamples - leftSlot, rightSamples - rightSlot);
      for (let index = 0; index < run; index += 1) {
        const sample = left[leftSlot + index] as number;
        pairs[at + index] = isLittleEndian
          ? sample | ((right[rightSlot + index] as number) << 8)
          : (sample << 8) | (right[rightSlot + index] as number);
      }
      at += run;
      leftSlot = (leftSlot + run) % leftSamples;
      rightSlot = (rightSlot + run) % rightSamples;
    }
    const audio = new Uint8Array(pairs.buffer);
    this.skip(until);
    return audio;
  }

  /** Drops both channels up to the position. */
  skip(until: number): void {
    const from = this.#taken % rightSamples;
    const count = Math.min(until - this.#taken, rightSamples);
    const unwrapped = Math.min(count, rightSamples - from);
    // What we don't send is silence. The left channel gets a frame in every tick.
    this.#right.fill(silentSample, from, from + unwrapped);
    this.#right.fill(silentSample, 0, count - unwrapped);
    this.#taken = until;
  }
}

/** Returns true if a packet can be this far from the clock. */
export function isNearClock(aheadSamples: number): boolean {
  return aheadSamples >= -maxAheadSamples && aheadSamples <= maxAheadSamples;
}
