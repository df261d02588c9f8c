// One call's detector, fenced in: whatever it throws becomes `amd_error` and `amd_stopped`, and hurts no other call.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';
import { closingAmdEvents } from '../calls/detection/closing-amd-events.ts';
import type { CreateDetector, Detector } from './detector-port.ts';

const frameMs = 20;

export type DetectionSink = {
  onAmd(events: readonly AmdEvent[]): void;
  onDetectorError(error: unknown): void;
};

export class Detection {
  readonly #sink: DetectionSink;
  #detector: Detector | undefined;
  #frames = 0;

  constructor(create: CreateDetector, settings: AmdSettings, sink: DetectionSink) {
    this.#sink = sink;
    try {
      this.#detector = create(settings);
    } catch (error) {
      this.#fail(error);
    }
  }

  get done(): boolean {
    return this.#detector === undefined;
  }

  push(frame: Int16Array, lost: boolean): void {
    this.#frames += 1;
    this.#run((detector) => detector.push(frame, lost));
  }

  stop(reason: string): void {
    this.#run((detector) => detector.stop(reason));
    this.#detector = undefined;
  }

  #run(step: (detector: Detector) => readonly AmdEvent[]): void {
    const detector = this.#detector;
    if (detector === undefined) return;
    let events: readonly AmdEvent[];
    try {
      events = step(detector);
      if (detector.done) this.#detector = undefined;
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (events.length > 0) this.#sink.onAmd(events);
  }

  #fail(error: unknown): void {
    this.#detector = undefined;
    this.#sink.onDetectorError(error);
    this.#sink.onAmd(closingAmdEvents('detector-failed', this.#frames * frameMs));
  }
}
