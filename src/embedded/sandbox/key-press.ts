// A key that a callee presses, as telephone events (RFC 4733): a packet every 20 ms, all with the timestamp of the first one, and
// the last one three times (section 2.5.1.4).

import { frameSamples } from './sounds.ts';

const keys = '0123456789*#ABCD';
/** 100 ms. */
const pressedFrames = 5;
const endPackets = 3;
const volumeDbm0 = 10;
const endBit = 0x80;

export class KeyPress {
  readonly #event: number;
  #packets = 0;

  constructor(key: string) {
    this.#event = keys.indexOf(key);
  }

  get isOver(): boolean {
    return this.#packets === pressedFrames + endPackets - 1;
  }

  get isFirst(): boolean {
    return this.#packets === 0;
  }

  /** The payload of the next packet. */
  next(): Uint8Array {
    this.#packets += 1;
    const durationSamples = Math.min(this.#packets, pressedFrames) * frameSamples;
    const isEnd = this.#packets >= pressedFrames;
    return Uint8Array.of(
      this.#event,
      (isEnd ? endBit : 0) | volumeDbm0,
      durationSamples >> 8,
      durationSamples & 0xff,
    );
  }
}
