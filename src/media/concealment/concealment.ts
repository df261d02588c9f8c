// Conceals lost audio where a bot or a speech recogniser would hear a gap (G.711, appendix I).
// While nothing is lost, it only keeps the last 50 ms. Audio after a gap overlaps with the
// continuation of the audio before it, so that there's no click. Detection hears the gap, because
// it has rules for lost frames. A bridge relays packets as they are: the far end's own telephone
// conceals its losses.

import { frameSamples, missingSample } from '../rtp/jitter-buffer.ts';
import { Continuation, sourceSamples } from './continuation.ts';

/** The largest value that µ-law can express. */
const peak = 32_635;

export class Concealment {
  /** The audio before the current frame, and then that frame. */
  readonly #audio = new Int16Array(sourceSamples + frameSamples);
  readonly #continuation = new Continuation();
  /** `silent`: nothing has been heard yet that could be continued. */
  #state: 'silent' | 'whole' | 'missing' | 'merging' = 'silent';
  #mergeSamples = 0;
  #merged = 0;

  /** Handles the next 20 ms if all of them have arrived. They change only just after a loss. */
  follow(frame: Int16Array): void {
    if (this.#state !== 'whole') {
      this.fill(frame);
      return;
    }
    this.#audio.copyWithin(0, frameSamples);
    this.#audio.set(frame, sourceSamples);
  }

  /** Replaces the samples of the next 20 ms that are missing. */
  fill(frame: Int16Array): void {
    this.#audio.copyWithin(0, frameSamples);
    for (let index = 0; index < frameSamples; index += 1) {
      const sample = frame[index] as number;
      const end = sourceSamples + index;
      const heard = sample === missingSample ? this.#continue(end) : this.#merge(sample);
      frame[index] = heard;
      this.#audio[end] = heard;
    }
  }

  /** Starts over, because another sender follows. */
  reset(): void {
    this.#audio.fill(0);
    this.#state = 'silent';
  }

  /** @param end index of the missing sample, before which the audio is whole */
  #continue(end: number): number {
    if (this.#state === 'silent') return 0;
    if (this.#state !== 'missing') {
      this.#state = 'missing';
      this.#continuation.begin(this.#audio, end);
    }
    return limited(this.#continuation.next());
  }

  /** Returns what to hear in place of a sample that has arrived. */
  #merge(sample: number): number {
    if (this.#state === 'silent') this.#state = 'whole';
    if (this.#state === 'whole') return sample;
    if (this.#state === 'missing') {
      this.#state = 'merging';
      this.#mergeSamples = this.#continuation.mergeSamples;
      this.#merged = 0;
    }
    this.#merged += 1;
    const share = this.#merged / (this.#mergeSamples + 1);
    if (this.#merged >= this.#mergeSamples) this.#state = 'whole';
    const made = this.#continuation.next();
    return limited(made + (sample - made) * share);
  }
}

function limited(sample: number): number {
  return Math.max(-peak, Math.min(peak, Math.round(sample)));
}
