// What a call's listeners hear of the far end: the audio that arrived, on a steady clock, with
// losses concealed and pauses filled with comfort noise.

import { ComfortNoise } from '../concealment/comfort-noise.ts';
import { Concealment } from '../concealment/concealment.ts';
import { JitterBuffer, type JitterStatistics, type PlayoutCounts } from './jitter-buffer.ts';
import type { RtpHeader } from './rtp-packet.ts';

export class ReceivedAudio {
  readonly #jitter: JitterBuffer;
  readonly #noise = new ComfortNoise();
  readonly #concealment = new Concealment();

  constructor(statistics: JitterStatistics, counts: PlayoutCounts) {
    this.#jitter = new JitterBuffer(statistics, counts);
  }

  get isStarted(): boolean {
    return this.#jitter.isStarted;
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
   * Writes the next 20 ms into `frame`.
   * @returns false if more than half of them are made up or silence because nothing arrived
   */
  take(frame: Int16Array): boolean {
    const isReceived = this.#jitter.take(frame);
    this.#noise.fill(frame);
    this.#concealment.fill(frame);
    return isReceived;
  }

  /** Starts over with the next packet, because it comes from another sender. */
  reset(): void {
    this.#jitter.reset();
    this.#noise.reset();
    this.#concealment.reset();
  }
}
