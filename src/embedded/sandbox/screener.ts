// A call screener. It asks who is calling, waits for an answer, and then either puts the caller
// through or hangs up. If the caller doesn't say anything, the screener hangs up too. It has no
// timers, so all times are based on the call's ticks and on the length of the audio that arrives.

import type { Codec } from '../../media/g711.ts';
import { frameMs, type SoundLibrary, type SoundName } from './sounds.ts';
import { VoiceTurns } from './voice-turns.ts';

/** After this much silence, the caller's answer has ended. */
const pauseMs = 1_000;
/** It takes the person this long to look at the phone and decide. */
const decidesMs = 1_500;

export class Screener {
  readonly #sounds: SoundLibrary;
  readonly #turns = new VoiceTurns(pauseMs);
  #saying: SoundName = 'screenerQuestion';
  #saidMs = 0;
  /**
   * Silence since the end of the question, or since the end of the caller's answer if there has
   * been one.
   */
  #waitedMs = 0;
  #isAnswered = false;
  #hasDecided = false;
  readonly #rejects: boolean;

  constructor(sounds: SoundLibrary, { rejects }: { readonly rejects?: true } = {}) {
    this.#sounds = sounds;
    this.#rejects = rejects === true;
  }

  /** True once the person has rejected the call. */
  get hasRejected(): boolean {
    return this.#rejects && this.#hasDecided;
  }

  /** Duration of the caller's silence since the question, or 0 once the caller has answered. */
  get unansweredMs(): number {
    return this.#isAnswered ? 0 : this.#waitedMs;
  }

  /**
   * Processes the payload of one packet from the caller. Speech is ignored while the screener
   * itself is talking.
   */
  hear(payload: Uint8Array, codec: Codec): void {
    if (this.#isSpeaking) return;
    if (this.#turns.hear(payload, codec) !== 'ended' || this.#isAnswered) return;
    this.#isAnswered = true;
    this.#waitedMs = 0;
  }

  /** Returns the next 20 ms of the screener's audio. */
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
    // The caller is speaking, so this isn't silence.
    if (!this.#turns.isSpeaking) this.#waitedMs += frameMs;
    if (!this.#isAnswered || this.#hasDecided || this.#waitedMs < decidesMs) return;
    this.#hasDecided = true;
    if (this.#rejects) return;
    this.#saying = 'helloSecond';
    this.#saidMs = 0;
  }
}
