// Answering machine detection on one call: frames of the far end's audio in, AMD events out. Pure apart from the memory of
// its voice activity detector: the same frames give the same events, however fast they come.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';
import { EventGrammar } from './event-grammar.ts';
import { FrameAnalyzer } from './frame-analyzer.ts';
import { PlanEar } from './plan-ear.ts';
import type { Transcription } from './stt/transcription.ts';

export type Detector = {
  /**
   * The next 20 ms since the 200 OK: 160 samples at 8 kHz. `lost`: they never came (their content is not looked at, the
   * time passes). `sentPower` is the power of what was sent in the 20 ms before (1: full scale). Returns what became known with
   * this frame, usually nothing, and nothing after `done`. Never throws.
   */
  push(frame: Int16Array, lost: boolean, sentPower?: number): readonly AmdEvent[];
  /** A recogniser's words so far: counted instead of ours from the next frame on, while they keep up with the audio. */
  understand(transcription: Transcription): void;
  /**
   * Ends detection and the ear. Returns `amd_stopped` with this reason, unless it was stated before. Frees memory: call it
   * always.
   */
  stop(reason: string): readonly AmdEvent[];
  /** `amd_stopped` was returned. */
  readonly done: boolean;
  /**
   * What a plan goes by, until `stop`, in a call that is to get a message (`waitForBeepMs`). Other calls have no ear, and their
   * frames are not analysed after `done`.
   */
  readonly ear?: PlanEar | undefined;
};

export type CreateDetector = (settings: AmdSettings) => Detector;

const nothing: readonly AmdEvent[] = [];

export const createDetector: CreateDetector = (settings) => new CallDetector(settings);

/** A class: a getter in an object of its own makes every look at it slow, fifty times a second for each call. */
class CallDetector implements Detector {
  readonly #grammar: EventGrammar;
  #analyzer: FrameAnalyzer | undefined;
  #ear: PlanEar | undefined;

  constructor(settings: AmdSettings) {
    const restart = () => this.#analyzer?.restart();
    this.#grammar = new EventGrammar(settings, restart);
    if (settings.waitForBeepMs !== undefined) this.#ear = new PlanEar(this.#grammar, restart);
  }

  get done(): boolean {
    return this.#grammar.done;
  }

  get ear(): PlanEar | undefined {
    return this.#ear;
  }

  push(frame: Int16Array, lost: boolean, sentPower = 0): readonly AmdEvent[] {
    const ear = this.#ear;
    if (ear === undefined && this.#grammar.done) return nothing;
    try {
      this.#analyzer ??= new FrameAnalyzer();
      const heard = this.#analyzer.analyze(ear?.filter(frame, sentPower) ?? frame, lost);
      const events = this.#grammar.advance(heard);
      ear?.hear(heard);
      if (this.#grammar.done && ear === undefined) this.#release();
      return events;
    } catch {
      // WebAssembly out of memory is all that can fail here; the call itself must not.
      this.#release();
      return this.#grammar.fail();
    }
  }

  understand(transcription: Transcription): void {
    this.#grammar.understand(transcription);
  }

  stop(reason: string): readonly AmdEvent[] {
    this.#release();
    return this.#grammar.stop(reason);
  }

  #release(): void {
    this.#analyzer?.release();
    this.#analyzer = undefined;
    this.#ear = undefined;
  }
}
