// A call screener. It asks who is calling, waits for an answer, and then either puts the called
// person through or hangs up. It also hangs up on a caller who says nothing. Its only clocks are
// its call's ticks and the audio that arrives.

import type { Codec } from '../../media/g711.ts';
import { frameMs, type SoundLibrary, type SoundName } from './sounds.ts';
import { VoiceTurns } from './voice-turns.ts';

/** This much silence ends the caller's answer. */
const pauseMs = 1_000;
/** The called person takes this long to look at the phone and decide. */
const decidesMs = 1_500;

export class Screener {
  readonly #sounds: SoundLibrary;
  readonly #turns = new VoiceTurns(pauseMs);
  #saying: SoundName = 'screenerQuestion';
  #saidMs = 0;
  /**
   * Silence since the end of the question, or, after the caller's answer, since the end of that
   * answer.
   */
  #waitedMs = 0;
  #isAnswered = false;
  #hasDecided = false;
  readonly #rejects: boolean;

  constructor(sounds: SoundLibrary, { rejects }: { readonly rejects?: true } = {}) {
    this.#sounds = sounds;
    this.#rejects = rejects === true;
  }

  /** True once the called person has declined to talk to the caller. */
  get hasRejected(): boolean {
    return this.#rejects && this.#hasDecided;
  }

  /** How long the caller has been silent since the question. 0 once the caller has answered. */
  get unansweredMs(): number {
    return this.#isAnswered ? 0 : this.#waitedMs;
  }

  /**
   * Takes the payload of one packet from the caller. Ignores speech while the screener itself
   * speaks.
   */
  hear(payload: Uint8Array, codec: Codec): void {
    if (this.#isSpeaking) return;
    if (this.#turns.hear(payload, codec) !== 'ended' || this.#isAnswered) return;
    this.#isAnswered = true;
    this.#waitedMs = 0;
  }

  /** Returns the next 20 ms of the screener's own audio. */
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
    // A caller who is speaking is not silent.
    if (!this.#turns.isSpeaking) this.#waitedMs += frameMs;
    if (!this.#isAnswered || this.#hasDecided || this.#waitedMs < decidesMs) return;
    this.#hasDecided = true;
    if (this.#rejects) return;
    this.#saying = 'helloSecond';
    this.#saidMs = 0;
  }
}
