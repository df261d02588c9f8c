// Continues audio that breaks off, as G.711, appendix I, does: it repeats the last pitch period,
// then the last two, then three, so that a longer gap doesn't buzz, and fades out. Unlike the
// appendix, it can't smooth the audio before the gap, because that has already been heard. Instead,
// it starts at the level of the last sample and glides over to the repetition.

import { findPitch, maxLag } from './pitch.ts';

const stepSamples = 80;
const maxPeriods = 3;
/** The first 10 ms have the full level. After 60 ms a guess has nothing to do with the voice. */
const fadeFromSamples = 80;
const silentFromSamples = 480;
/** The longest repetition, and the quarter of a period before it with which its end overlaps. */
export const sourceSamples = maxPeriods * maxLag + maxLag / 4;

export class Continuation {
  /** The audio before the gap. */
  readonly #source = new Int16Array(sourceSamples);
  #pitch = maxLag;
  /** A quarter of the pitch. Pieces overlap by this much. */
  #overlap = maxLag / 4;
  #periods = 1;
  /** Position within the repeated periods, and within those that the current ones replace. */
  #offset = 0;
  #formerOffset = 0;
  /** Samples returned since the gap began. */
  #made = 0;
  /** Difference between the last sample and the one that the repetition would have in its place. */
  #step = 0;

  /** Starts to continue the audio before `end`, of which there are at least `sourceSamples`. */
  begin(audio: Int16Array, end: number): void {
    this.#source.set(audio.subarray(end - sourceSamples, end));
    this.#pitch = findPitch(audio, end);
    this.#overlap = this.#pitch >> 2;
    this.#periods = 1;
    this.#offset = 0;
    this.#made = 0;
    const before = audio[end - 1 - this.#pitch] as number;
    this.#step = (audio[end - 1] as number) - before;
  }

  /** How many samples the end of the gap overlaps with this: longer after a longer gap. */
  get mergeSamples(): number {
    const steps = Math.max(0, Math.ceil(this.#made / stepSamples) - 1);
    return Math.min(stepSamples, this.#overlap + 32 * steps);
  }

  /** Returns the next sample. */
  next(): number {
    const at = this.#made;
    if (at >= silentFromSamples) return 0;
    this.#made = at + 1;
    const inStep = at % stepSamples;
    if (inStep === 0 && at > 0 && this.#periods < maxPeriods) {
      this.#formerOffset = this.#offset;
      this.#periods += 1;
    }
    const glide = at < this.#overlap ? this.#step * (1 - (at + 1) / (this.#overlap + 1)) : 0;
    const gain =
      at < fadeFromSamples ? 1 : (silentFromSamples - at) / (silentFromSamples - fadeFromSamples);
    return (this.#repeated(at, inStep) + glide) * gain;
  }

  /** Overlaps the former periods with the current ones where these have just become more. */
  #repeated(at: number, inStep: number): number {
    const sample = this.#sampleAt(this.#periods, this.#offset);
    this.#offset = (this.#offset + 1) % (this.#periods * this.#pitch);
    const isReplacing = at >= stepSamples && at < maxPeriods * stepSamples;
    if (!isReplacing || inStep >= this.#overlap) return sample;
    const share = (inStep + 1) / (this.#overlap + 1);
    const former = this.#sampleAt(this.#periods - 1, this.#formerOffset);
    this.#formerOffset = (this.#formerOffset + 1) % ((this.#periods - 1) * this.#pitch);
    return former + (sample - former) * share;
  }

  /**
   * Returns a sample of the last `periods`. Their end overlaps with the audio before their start,
   * so that they can be repeated.
   */
  #sampleAt(periods: number, offset: number): number {
    const source = this.#source;
    const length = periods * this.#pitch;
    const index = sourceSamples - length + offset;
    const sample = source[index] as number;
    const toEnd = length - offset;
    if (toEnd > this.#overlap) return sample;
    const share = 1 - toEnd / (this.#overlap + 1);
    return sample + ((source[index - length] as number) - sample) * share;
  }
}
