// Records the loudness of a call in both directions, one byte per time step. When the buffer is
// full, every two steps are merged into one.

import type { AudioEnvelope } from '../calls/capture/capture.ts';
import type { Codec } from './g711.ts';

/** Length of a step until the buffer first fills up: two ticks of the session. */
const firstStepMs = 40;
const ticksInFirstStep = 2;
const firstRoom = 256;
/**
 * Steps kept per direction: 11 minutes in steps of 40 ms. Both directions together stay below 64
 * KiB as JSON.
 */
const maxSteps = 16_384;

export class EnvelopeRecorder {
  readonly #startedAt = Date.now();
  #heard = new Uint8Array(firstRoom);
  #said = new Uint8Array(firstRoom);
  #steps = 0;
  #ticksInStep = ticksInFirstStep;
  #tick = 0;
  #heardPeak = 0;
  #saidPeak = 0;

  hear(packet: Uint8Array, start: number, end: number, codec: Codec): void {
    const peak = peakOf(packet, start, end, codec);
    if (peak > this.#heardPeak) this.#heardPeak = peak;
  }

  say(packet: Uint8Array, start: number, codec: Codec): void {
    const peak = peakOf(packet, start, packet.length, codec);
    if (peak > this.#saidPeak) this.#saidPeak = peak;
  }

  /** Advances the recording by 20 ms. */
  tick(): void {
    this.#tick += 1;
    if (this.#tick < this.#ticksInStep) return;
    this.#tick = 0;
    if (this.#steps === this.#heard.length) this.#makeRoom();
    this.#heard[this.#steps] = this.#heardPeak;
    this.#said[this.#steps] = this.#saidPeak;
    this.#steps += 1;
    this.#heardPeak = 0;
    this.#saidPeak = 0;
  }

  read(): AudioEnvelope {
    return {
      startedAt: this.#startedAt,
      stepMs: (firstStepMs / ticksInFirstStep) * this.#ticksInStep,
      heard: this.#heard.slice(0, this.#steps),
      said: this.#said.slice(0, this.#steps),
    };
  }

  #makeRoom(): void {
    if (this.#steps < maxSteps) {
      this.#heard = grown(this.#heard);
      this.#said = grown(this.#said);
      return;
    }
    halve(this.#heard);
    halve(this.#said);
    this.#steps /= 2;
    this.#ticksInStep *= 2;
  }
}

/**
 * Returns the loudest sample, from 0 (silence) to 127. G.711 is logarithmic: without its sign bit,
 * and inverted as its law requires, a byte is the loudness itself.
 */
function peakOf(packet: Uint8Array, start: number, end: number, codec: Codec): number {
  // µ-law has 127 at silence and counts down; A-law counts up with every other bit inverted.
  const mask = codec === 'PCMU' ? 0x7f : 0x55;
  let peak = 0;
  // Don't skip samples: every fourth sample of a 1,000 Hz tone could be a zero crossing.
  for (let index = start; index < end; index += 1) {
    const level = ((packet[index] as number) ^ mask) & 0x7f;
    if (level > peak) peak = level;
  }
  return peak;
}

function grown(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(bytes.length * 2);
  larger.set(bytes);
  return larger;
}

function halve(bytes: Uint8Array): void {
  for (let index = 0; index < bytes.length; index += 2) {
    bytes[index / 2] = Math.max(bytes[index] as number, bytes[index + 1] as number);
  }
}
