// The most recent audio of a call's two sides, as rings of µ-law samples. Positions count samples
// from the beginning of the recording.

import { alawToMulaw, type Codec } from '../../media/g711.ts';
import { frameSamples } from '../../media/rtp/jitter-buffer.ts';
import { channelCount, silentSample } from '../recording-messages.ts';

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
    const right = this.#right;
    let from = start;
    let position = at;
    if (position < this.#taken) {
      from += this.#taken - position;
      position = this.#taken;
    }
    const length = packet.length - from;
    if (length <= 0 || position + length > this.#taken + rightSamples) return;
    let slot = position % rightSamples;
    const isAlaw = codec === 'PCMA';
    for (let index = from; index < packet.length; index += 1) {
      const byte = packet[index] as number;
      right[slot] = isAlaw ? (alawToMulaw[byte] as number) : byte;
      slot = slot + 1 === rightSamples ? 0 : slot + 1;
    }
  }

  /** Takes both channels up to the position, interleaved. */
  take(until: number): Uint8Array<ArrayBuffer> {
    const count = until - this.#taken;
    const audio = new Uint8Array(count * channelCount);
    const [left, right] = [this.#left, this.#right];
    let leftSlot = this.#taken % leftSamples;
    let rightSlot = this.#taken % rightSamples;
    for (let at = 0; at < audio.length; at += channelCount) {
      audio[at] = left[leftSlot] as number;
      audio[at + 1] = right[rightSlot] as number;
      leftSlot = leftSlot + 1 === leftSamples ? 0 : leftSlot + 1;
      rightSlot = rightSlot + 1 === rightSamples ? 0 : rightSlot + 1;
    }
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
