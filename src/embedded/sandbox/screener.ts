// A call screener: asks who calls, waits for an answer, and then puts the one who was called through, or does not; it hangs up on
// who says nothing. Its clock is the ticks of its call and the audio that arrives.

import type { Codec } from '../../media/g711.ts';
import { frameMs, type SoundLibrary, type SoundName } from './sounds.ts';
import { VoiceTurns } from './voice-turns.ts';

/** After this much silence the answer is over. */
const pauseMs = 1_000;
/** She looks at her telephone first. */
const decidesMs = 1_500;

export class Screener {
  readonly #sounds: SoundLibrary;
  readonly #turns = new VoiceTurns(pauseMs);
  #saying: SoundName = 'screenerQuestion';
  #saidMs = 0;
  /** Since the question, until it is answered; since the answer. */
  #waitedMs = 0;
  #isAnswered = false;
  #hasDecided = false;
  readonly #rejects: boolean;

  constructor(sounds: SoundLibrary, { rejects }: { readonly rejects?: true } = {}) {
    this.#sounds = sounds;
    this.#rejects = rejects === true;
  }

  /** The one who was called does not want to talk to the caller. */
  get hasRejected(): boolean {
    return this.#rejects && this.#hasDecided;
  }

  /** The caller has not answered for so long. */
  get unansweredMs(): number {
    return this.#isAnswered ? 0 : this.#waitedMs;
  }

  /** A packet of the caller. What is said while it asks is no answer. */
  hear(payload: Uint8Array, codec: Codec): void {
    if (this.#isSpeaking) return;
    if (this.#turns.hear(payload, codec) !== 'ended' || this.#isAnswered) return;
    this.#isAnswered = true;
    this.#waitedMs = 0;
  }

  /** The next 20 ms of its own. */
  nextFrame(codec: Codec): Uint8Array {
    if (!this.#isSpeaking) this.#wait();
    const frame = this.#sounds.frame(this.#saying, this.#saidMs / frameMs, codec);
    this.#saidMs += frameMs;
    return frame;
  }

  get #isSpeaking(): boolean {
    return this.#saidMs < this.#sounds.lengthMs(this.#saying);
  }

  #wait(): void {
    // Who speaks has not been silent.
    if (!this.#turns.isSpeaking) this.#waitedMs += frameMs;
    if (!this.#isAnswered || this.#hasDecided || this.#waitedMs < decidesMs) return;
    this.#hasDecided = true;
    if (this.#rejects) return;
    this.#saying = 'helloSecond';
    this.#saidMs = 0;
  }
}
