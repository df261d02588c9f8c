// Answering machine detection for one call: audio frames from the far end go in, AMD events come
// out. There is no clock and no I/O, so the same frames always produce the same events, no matter
// how fast they arrive.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';
import { EventGrammar } from './event-grammar.ts';
import { FrameAnalyzer } from './frame-analyzer.ts';
import { PlanEar } from './plan-ear.ts';
import type { Transcription } from './stt/transcription.ts';

export type Detector = {
  /**
   * Processes the next 20 ms since the 200 OK: 160 samples at 8 kHz. If the frame never arrived
   * (`lost`), its content is ignored but its time still counts. `sentPower` is the power of the
   * audio that we sent in the previous 20 ms (1: full scale). Returns this frame's events, usually
   * none and always none after `done`. Never throws.
   */
  push(frame: Int16Array, lost: boolean, sentPower?: number): readonly AmdEvent[];
  /**
   * Passes on the words that a recogniser has understood so far. From the next frame on, they
   * replace the detector's own count as long as the recogniser keeps up with the audio.
   */
  understand(transcription: Transcription): void;
  /**
   * Ends detection and the ear. Returns `amd_stopped` with this reason, unless an earlier call
   * already did. Call it for every detector, because it frees memory outside the JavaScript heap.
   */
  stop(reason: string): readonly AmdEvent[];
  /** True once `amd_stopped` has been returned. */
  readonly done: boolean;
  /**
   * What the call's plan hears, until `stop`. Undefined unless the request wants a message left
   * (`waitForBeepMs`). Without an ear, we don't analyse frames after `done`.
   */
  readonly ear?: PlanEar | undefined;
};

export type CreateDetector = (settings: AmdSettings) => Detector;

const nothing: readonly AmdEvent[] = [];

export const createDetector: CreateDetector = (settings) => new CallDetector(settings);

/**
 * This is a class because getters on an object literal are slow to read, and we'd read them fifty
 * times a second per call.
 */
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
      // This can only happen if WebAssembly runs out of memory. The call goes on without detection.
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
