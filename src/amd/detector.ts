// Answering machine detection on one call: frames of the far end's audio in, AMD events out. Pure apart from the memory of
// its voice activity detector: the same frames give the same events, however fast they come.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';
import { createEventGrammar, type EventGrammar } from './event-grammar.ts';
import { type FrameAnalyzer, openFrameAnalyzer } from './frame-analyzer.ts';
import type { Transcription } from './stt/transcription.ts';

export type Detector = {
  /**
   * The next 20 ms since the 200 OK: 160 samples at 8 kHz. `lost`: they never came (their content is not looked at, the
   * time passes). Returns what became known with this frame, usually nothing. Never throws; after `done` it does nothing.
   */
  push(frame: Int16Array, lost: boolean): readonly AmdEvent[];
  /** A recogniser's words so far: counted instead of ours from the next frame on, while they keep up with the audio. */
  understand(transcription: Transcription): void;
  /** The call ended: `amd_stopped` with this reason, unless it was stated before. Also frees memory: call it always. */
  stop(reason: string): readonly AmdEvent[];
  /** `amd_stopped` was returned. */
  readonly done: boolean;
};

export type CreateDetector = (settings: AmdSettings) => Detector;

const nothing: readonly AmdEvent[] = [];

export const createDetector: CreateDetector = (settings) => new CallDetector(settings);

/** A class: a getter in an object of its own makes every look at it slow, fifty times a second for each call. */
class CallDetector implements Detector {
  readonly #grammar: EventGrammar;
  #analyzer: FrameAnalyzer | undefined;

  constructor(settings: AmdSettings) {
    this.#grammar = createEventGrammar(settings, () => this.#analyzer?.restart());
  }

  get done(): boolean {
    return this.#grammar.done;
  }

  push(frame: Int16Array, lost: boolean): readonly AmdEvent[] {
    if (this.#grammar.done) return nothing;
    try {
      this.#analyzer ??= openFrameAnalyzer();
      return this.#finish(this.#grammar.advance(this.#analyzer.analyze(frame, lost)));
    } catch {
      // WebAssembly out of memory is all that can fail here; the call itself must not.
      return this.#finish(this.#grammar.fail());
    }
  }

  understand(transcription: Transcription): void {
    this.#grammar.understand(transcription);
  }

  stop(reason: string): readonly AmdEvent[] {
    return this.#finish(this.#grammar.stop(reason));
  }

  #finish(events: readonly AmdEvent[]): readonly AmdEvent[] {
    if (this.#grammar.done) {
      this.#analyzer?.release();
      this.#analyzer = undefined;
    }
    return events;
  }
}
