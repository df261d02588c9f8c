// What a call's listeners hear of the far end: the audio that arrived, on a steady clock, with
// losses concealed and pauses filled with comfort noise.

import { ComfortNoise } from '../concealment/comfort-noise.ts';
import { Concealment } from '../concealment/concealment.ts';
import {
  frameSamples,
  JitterBuffer,
  type JitterStatistics,
  missingSample,
  type PlayoutCounts,
} from './jitter-buffer.ts';
import type { RtpHeader } from './rtp-packet.ts';

export class ReceivedAudio {
  readonly #jitter: JitterBuffer;
  readonly #noise = new ComfortNoise();
  readonly #concealment = new Concealment();

  constructor(statistics: JitterStatistics, counts: PlayoutCounts) {
    this.#jitter = new JitterBuffer(statistics, counts);
  }

  /** True if the last frame lacks more than half of its audio, and the far end sends audio. */
  get isMissing(): boolean {
    return this.#jitter.isMissing;
  }

  put(packet: Uint8Array, header: RtpHeader, decode: Int16Array): void {
    this.#jitter.put(packet, header, decode);
  }

  /** Handles a comfort noise packet. */
  pause(packet: Uint8Array, header: RtpHeader): void {
    this.#noise.setLevel(packet, header.payloadStart, header.payloadEnd);
    this.#jitter.pause(header);
  }

  /** Takes note of a packet without audio, so that it doesn't count as lost. */
  note(sequence: number): void {
    this.#jitter.note(sequence);
  }

  /**
   * Writes the next 20 ms into both frames: into `heard` with losses concealed, and into `arrived`
   * with silence in their place.
   * @returns false if more than half of the frame is missing
   */
  take(heard: Int16Array, arrived: Int16Array): boolean {
    const isReceived = this.#jitter.take(heard);
    if (this.#jitter.isWhole) {
      arrived.set(heard);
      this.#concealment.follow(heard);
      return true;
    }
    this.#noise.fill(heard);
    for (let index = 0; index < frameSamples; index += 1) {
      const sample = heard[index] as number;
      arrived[index] = sample === missingSample ? 0 : sample;
    }
    this.#concealment.fill(heard);
    return isReceived;
  }

  /** Starts over with the next packet, because it comes from another sender. */
  reset(): void {
    this.#jitter.reset();
    this.#noise.reset();
    this.#concealment.reset();
  }
}
