// What a call's plan hears, frame by frame: beeps as soon as they end, and who speaks. The ear
// reads detection's analysis, which continues after the verdict for this purpose. This way the plan
// and detection agree about each beep.

import { EchoGate } from './echo-gate.ts';
import type { EventGrammar } from './event-grammar.ts';
import type { HeardInDetail } from './frame-analyzer.ts';
import { decide, type Verdict } from './verdict.ts';
import type { Utterance } from './voice/utterance.ts';

/** The fields change with every frame; src/media/detector-port.ts describes them. */
export class PlanEar {
  beep = false;
  tonePending = false;
  speechMs = 0;
  pauseMs = 0;
  who: Verdict['who'] | undefined;
  readonly #grammar: EventGrammar;
  readonly #restart: () => void;
  readonly #gate = new EchoGate();
  /**
   * Set at the first message. From then on, the echo of the messages is removed. Until then,
   * detection hears the line unchanged.
   */
  #isGated = false;
  /** The ear reported the ending beep before detection found it. */
  #reportedEarly = false;
  /** Speech from before `forgetSpeaker`, which detection still counts until it is done. */
  #forgottenMs = 0;

  /**
   * `restart` makes the analysis forget what was said. The ear calls it only after detection is
   * done, because detection needs that speech until then.
   */
  constructor(grammar: EventGrammar, restart: () => void) {
    this.#grammar = grammar;
    this.#restart = restart;
  }

  /** @returns the next frame for the analysis, without the echo of the messages */
  filter(frame: Int16Array, sentPower: number): Int16Array {
    const filtered = this.#gate.pass(frame, sentPower);
    return this.#isGated ? filtered : frame;
  }

  /** Takes the analysis of the frame. Call it after the grammar has taken the same frame. */
  hear(heard: HeardInDetail): void {
    const { found, tonePending } = this.#grammar.believed;
    const isEarly = this.#grammar.expectsBeep(heard);
    this.beep = isEarly || (found?.kind === 'beep' && !this.#reportedEarly);
    if (isEarly) this.#reportedEarly = true;
    else if (heard.found !== undefined || heard.toneHz > 0) this.#reportedEarly = false;
    this.tonePending = tonePending;
    this.#hearSpeaker(heard.utterance);
  }

  /**
   * Waits for a new speaker. Also drops the beep of this frame, because detection may have reported
   * it.
   */
  forgetSpeaker(): void {
    this.#isGated = true;
    this.beep = false;
    this.speechMs = 0;
    this.pauseMs = 0;
    this.who = undefined;
    this.#forgottenMs = Infinity;
    if (this.#grammar.done) this.#restart();
  }

  #hearSpeaker(utterance: Utterance | undefined): void {
    const speechMs = utterance?.speechMs ?? 0;
    this.#forgottenMs = Math.min(this.#forgottenMs, speechMs);
    this.speechMs = speechMs - this.#forgottenMs;
    this.pauseMs = utterance?.pauseMs ?? 0;
    this.who = utterance === undefined ? undefined : decide(utterance, undefined)?.who;
    if (this.#forgottenMs > 0 && this.#grammar.done) this.#restart();
  }
}
