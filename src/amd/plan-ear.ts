// The ear tells a call's plan what can be heard, frame by frame: beeps as soon as they end, and who
// is speaking. It relies on detection's own analysis, which therefore continues after the verdict.
// As a result, the plan and detection always agree about a beep.

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
   * Set when the first message starts. From then on, we remove the echo of our messages. Before
   * that, detection analyses the line unchanged.
   */
  #isGated = false;
  /** True if the ear has already reported the beep that's ending, before detection has found it. */
  #reportedEarly = false;
  /** Speech from before `forgetSpeaker`. Detection still includes it until `done`. */
  #forgottenMs = 0;

  /**
   * `restart` makes the analysis forget what has been said. The ear only calls it once detection is
   * done, because detection needs that speech until then.
   */
  constructor(grammar: EventGrammar, restart: () => void) {
    this.#grammar = grammar;
    this.#restart = restart;
  }

  /** @returns the next frame to analyse, without the echo of our messages */
  filter(frame: Int16Array, sentPower: number): Int16Array {
    const filtered = this.#gate.pass(frame, sentPower);
    return this.#isGated ? filtered : frame;
  }

  /** Processes one analysed frame. Call this after the grammar has processed the same frame. */
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
   * Starts waiting for a new speaker. Also discards this frame's beep, because detection may have
   * reported it.
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
    this.who = utterance === undefined ? undefined : decide(utterance, {})?.who;
    if (this.#forgottenMs > 0 && this.#grammar.done) this.#restart();
  }
}
