// How much of a call this process didn't hear because it was late, and whether that was too much to
// conclude anything from silence: a starved gateway would otherwise report that nobody spoke.

import { frameMs } from './frame.ts';
import type { Utterance } from './voice/utterance.ts';

/** Silence doesn't count if more than this share went unheard: of the call, or of the silence. */
const maxUnheardShare = 0.1;

export class Unheard {
  /** Since detection began. */
  totalMs = 0;
  #elapsedMs = 0;
  #silenceMs = 0;
  #sinceWordMs = 0;

  /** Processes the next frame. */
  add(unheardMs: number, utterance: Utterance | undefined): void {
    this.#elapsedMs += frameMs;
    this.totalMs += unheardMs;
    this.#silenceMs = utterance?.pauseMs ?? this.#elapsedMs;
    this.#sinceWordMs = this.#silenceMs === 0 ? 0 : this.#sinceWordMs + unheardMs;
  }

  /** True if somebody may have spoken in what we took for silence. */
  get makesSilenceDoubtful(): boolean {
    return (
      this.totalMs > maxUnheardShare * this.#elapsedMs ||
      this.#sinceWordMs > maxUnheardShare * this.#silenceMs
    );
  }
}
