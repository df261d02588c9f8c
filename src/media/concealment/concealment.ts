// Conceals lost audio where a bot or a speech recogniser would hear a gap (G.711, appendix I).
// While nothing is lost, it only keeps the last 50 ms. Audio after a gap overlaps with the
// continuation of the audio before it, so that there's no click. Detection hears the gap, because
// it has rules for lost frames. A bridge relays packets as they are: the far end's own telephone
// conceals its losses.

import { frameSamples, missingSample } from '../rtp/jitter-buffer.ts';
import { Continuation, sourceSamples } from './continuation.ts';

/** The largest value that µ-law can express. */
const peak = 32_635;
/** The current frame, and enough frames before it to continue them. */
const keptFrames = 1 + Math.ceil(sourceSamples / frameSamples);

/** Scratch memory, shared by all calls: the audio before the current frame, and then that frame. */
const audio = new Int16Array(sourceSamples + frameSamples);

export class Concealment {
  /**
   * A ring of the last frames. While nothing is lost, each frame is written here once, and nothing
   * is read, because reading and moving the audio of hundreds of calls would fill a core's cache.
   */
  readonly #frames = new Int16Array(keptFrames * frameSamples);
  /** Where the next frame goes. */
  #next = 0;
  /** Undefined until the first loss. */
  #continuation: Continuation | undefined;
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
    this.#keep(frame);
  }

  /** Replaces the samples of the next 20 ms that are missing. */
  fill(frame: Int16Array): void {
    this.#readBefore();
    for (let index = 0; index < frameSamples; index += 1) {
      const sample = frame[index] as number;
      const end = sourceSamples + index;
      const heard = sample === missingSample ? this.#continue(end) : this.#merge(sample);
      frame[index] = heard;
      audio[end] = heard;
    }
    this.#keep(frame);
  }

  /** Starts over, because another sender follows. */
  reset(): void {
    this.#frames.fill(0);
    this.#state = 'silent';
  }

  #keep(frame: Int16Array): void {
    this.#frames.set(frame, this.#next);
    this.#next = (this.#next + frameSamples) % this.#frames.length;
  }

  /** Copies the audio before the current frame to the beginning of `audio`, in order. */
  #readBefore(): void {
    const frames = this.#frames;
    const first = this.#next + frames.length - sourceSamples;
    for (let index = 0; index < sourceSamples; index += 1) {
      audio[index] = frames[(first + index) % frames.length] as number;
    }
  }

  /** @param end index of the missing sample, before which the audio is whole */
  #continue(end: number): number {
    if (this.#state === 'silent') return 0;
    this.#continuation ??= new Continuation();
    if (this.#state !== 'missing') {
      this.#state = 'missing';
      this.#continuation.begin(audio, end);
    }
    return limited(this.#continuation.next());
  }

  /** Returns what to hear in place of a sample that has arrived. */
  #merge(sample: number): number {
    if (this.#state === 'silent') this.#state = 'whole';
    const continuation = this.#continuation;
    if (this.#state === 'whole' || continuation === undefined) return sample;
    if (this.#state === 'missing') {
      this.#state = 'merging';
      this.#mergeSamples = continuation.mergeSamples;
      this.#merged = 0;
    }
    this.#merged += 1;
    const share = this.#merged / (this.#mergeSamples + 1);
    if (this.#merged >= this.#mergeSamples) this.#state = 'whole';
    const made = continuation.next();
    return limited(made + (sample - made) * share);
  }
}

function limited(sample: number): number {
  return Math.max(-peak, Math.min(peak, Math.round(sample)));
}
