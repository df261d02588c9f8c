// Records a call's loudness in both directions, as one byte per time step. When the buffer is full,
// we merge each pair of steps into one, and continue with steps of twice the length.

import type { AudioEnvelope } from '../calls/capture/capture.ts';
import type { Codec } from './g711.ts';

/** Until the buffer fills up for the first time, a step is as long as two session ticks. */
const firstStepMs = 40;
const ticksInFirstStep = 2;
const initialSteps = 256;
/**
 * We keep this many steps per direction, which is 11 minutes in 40 ms steps. Encoded as JSON, both
 * directions together stay below 64 KiB.
 */
const maxSteps = 16_384;

export class EnvelopeRecorder {
  readonly #startedAt = Date.now();
  #heard = new Uint8Array(initialSteps);
  #said = new Uint8Array(initialSteps);
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
      this.#heard = doubled(this.#heard);
      this.#said = doubled(this.#said);
      return;
    }
    halve(this.#heard);
    halve(this.#said);
    this.#steps /= 2;
    this.#ticksInStep *= 2;
  }
}

/**
 * Returns the loudest sample, from 0 (silence) to 127. We don't need to decode anything, because
 * G.711 is logarithmic: without its sign bit, and inverted as its law requires, each byte is
 * already a measure of loudness.
 */
function peakOf(packet: Uint8Array, start: number, end: number, codec: Codec): number {
  // µ-law counts down from 127 at silence. A-law counts up, with every other bit inverted.
  const mask = codec === 'PCMU' ? 0x7f : 0x55;
  let peak = 0;
  // Don't skip samples. In a 1,000 Hz tone, for example, every fourth sample may be a zero
  // crossing.
  for (let index = start; index < end; index += 1) {
    const level = ((packet[index] as number) ^ mask) & 0x7f;
    if (level > peak) peak = level;
  }
  return peak;
}

function doubled(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(bytes.length * 2);
  larger.set(bytes);
  return larger;
}

function halve(bytes: Uint8Array): void {
  for (let index = 0; index < bytes.length; index += 2) {
    bytes[index / 2] = Math.max(bytes[index] as number, bytes[index + 1] as number);
  }
}
