// The most recent audio of a call's two sides, as a ring of interleaved µ-law samples. Positions
// count samples from the beginning of the recording.

import { alawToMulaw, type Codec } from '../../media/g711.ts';
import { frameSamples } from '../../media/rtp/jitter-buffer.ts';
import { channelCount, silentSample } from '../recording-messages.ts';

/**
 * The ring stores four seconds: what's held back, the second that is collected, and what we send
 * ahead of the clock. It's a whole number of frames, so that no frame wraps, and a whole number of
 * seconds, so that the audio of a second rarely does.
 */
const ringSamples = 200 * frameSamples;
/** What we send may be this far ahead of the clock. A relay allows one second, plus a packet. */
const maxAheadSamples = 96 * frameSamples;

export class TwoChannelBuffer {
  readonly #ring = new Uint8Array(ringSamples * channelCount).fill(silentSample);
  /** Everything before this position has been taken. */
  #taken = 0;

  /** Writes the left channel's frame at a position that is a whole number of frames. */
  writeLeft(at: number, frame: Uint8Array): void {
    const ring = this.#ring;
    let slot = (at % ringSamples) * channelCount;
    for (let index = 0; index < frameSamples; index += 1) {
      ring[slot] = frame[index] as number;
      slot += channelCount;
    }
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
    if (length <= 0 || position + length > this.#taken + ringSamples) return;
    const slot = position % ringSamples;
    const unwrapped = Math.min(length, ringSamples - slot);
    this.#copyRight(slot, packet, from, from + unwrapped, codec);
    this.#copyRight(0, packet, from + unwrapped, packet.length, codec);
  }

  #copyRight(at: number, packet: Uint8Array, from: number, until: number, codec: Codec): void {
    const ring = this.#ring;
    let slot = at * channelCount + 1;
    if (codec === 'PCMU') {
      for (let index = from; index < until; index += 1) {
        ring[slot] = packet[index] as number;
        slot += channelCount;
      }
      return;
    }
    for (let index = from; index < until; index += 1) {
      ring[slot] = alawToMulaw[packet[index] as number] as number;
      slot += channelCount;
    }
  }

  /**
   * Returns both channels from what hasn't been taken to the position, or to where the ring wraps.
   * The array is the ring's own memory.
   */
  next(until: number): Uint8Array {
    const from = this.#taken % ringSamples;
    const end = Math.min(from + until - this.#taken, ringSamples);
    return this.#ring.subarray(from * channelCount, end * channelCount);
  }

  /** Drops both channels up to the position. */
  skip(until: number): void {
    const from = this.#taken % ringSamples;
    const count = Math.min(until - this.#taken, ringSamples);
    const unwrapped = Math.min(count, ringSamples - from);
    // What we don't send is silence. The left channel gets a frame in every tick.
    this.#ring.fill(silentSample, from * channelCount, (from + unwrapped) * channelCount);
    if (unwrapped < count) this.#ring.fill(silentSample, 0, (count - unwrapped) * channelCount);
    this.#taken = until;
  }
}

/** Returns true if a packet can be this far from the clock. */
export function isNearClock(aheadSamples: number): boolean {
  return aheadSamples >= -maxAheadSamples && aheadSamples <= maxAheadSamples;
}
