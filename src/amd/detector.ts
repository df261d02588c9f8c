// Answering machine detection for one call. It receives audio frames from the far end of the call
// and emits AMD events. Because it uses neither a clock nor I/O, the same frames always produce the
// same events, no matter how fast the frames arrive.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { DetectionStop } from '../calls/detection/amd-reasons.ts';
import { EventGrammar } from './event-grammar.ts';
import { FrameAnalyzer } from './frame-analyzer.ts';
import { PlanEar } from './plan-ear.ts';
import type { Transcription } from './stt/transcription.ts';

export type Detector = {
  /**
   * Processes the next 20 ms since the 200 OK: 160 samples at 8 kHz. If the frame never arrived
   * (`lost`), we ignore its content but still count its time. `sentPower` is the power of the audio
   * that we sent in the previous 20 ms (full scale is 1). Only a recogniser listens to `heard`, the
   * frame with losses concealed. Default: `frame`. `unheardMs` is audio that we didn't hear because
   * we were late, before this frame or in its place. Default: 0. Returns the events for this frame.
   * There usually aren't any, and there never are after `done`. Never throws.
   */
  push(
    frame: Int16Array,
    lost: boolean,
    sentPower?: number,
    heard?: Int16Array,
    unheardMs?: number,
  ): readonly AmdEvent[];
  /**
   * Passes on the words that a recogniser has understood so far. From the next frame on, these
   * words replace the detector's own count for as long as the recogniser keeps up with the audio.
   */
  understand(transcription: Transcription): void;
  /**
   * Ends detection and releases the ear. Returns `amd_stopped` with this reason, unless `stop` has
   * already been called. Every detector must be stopped, because that frees memory outside the
   * JavaScript heap.
   */
  stop(reason: DetectionStop): readonly AmdEvent[];
  /** True once `amd_stopped` has been returned. */
  readonly done: boolean;
  /**
   * The ear, i.e. what the call's plan can hear until `stop`. Undefined unless the request asks for
   * a message to be left (`waitForBeepMs`). Without an ear, frames aren't analysed any more after
   * `done`.
   */
  readonly ear?: PlanEar | undefined;
};

export type CreateDetector = (settings: AmdSettings) => Detector;

const nothing: readonly AmdEvent[] = [];

export const createDetector: CreateDetector = (settings) => new CallDetector(settings);

/**
 * We use a class because getters on an object literal are slow, and these are read fifty times a
 * second for each call.
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

  push(
    frame: Int16Array,
    lost: boolean,
    sentPower = 0,
    _heard = frame,
    unheardMs = 0,
  ): readonly AmdEvent[] {
    const ear = this.#ear;
    if (ear === undefined && this.#grammar.done) return nothing;
    try {
      this.#analyzer ??= new FrameAnalyzer();
      const heard = this.#analyzer.analyze(ear?.filter(frame, sentPower) ?? frame, lost);
      const events = this.#grammar.advance(heard, unheardMs);
      ear?.hear(heard);
      if (this.#grammar.done && ear === undefined) this.#release();
      return events;
    } catch {
      // This only happens if WebAssembly has run out of memory. The call continues without
      // detection.
      this.#release();
      return this.#grammar.fail();
    }
  }

  understand(transcription: Transcription): void {
    this.#grammar.understand(transcription);
  }

  stop(reason: DetectionStop): readonly AmdEvent[] {
    this.#release();
    return this.#grammar.stop(reason);
  }

  #release(): void {
    this.#analyzer?.release();
    this.#analyzer = undefined;
    this.#ear = undefined;
  }
}
