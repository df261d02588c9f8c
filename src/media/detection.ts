// Runs one call's detector and isolates its failures. If a detector throws, only its own call is
// affected, and gets `amd_error` and `amd_stopped`.

import type { AmdSettings } from '../calls/call-types.ts';
import { type AmdEvent, closingAmdEvents } from '../calls/detection/amd-event.ts';
import type { DetectionStop } from '../calls/detection/amd-reasons.ts';
import type { CreateDetector, Detector, PlanEar } from './detector-port.ts';

const frameMs = 20;

export type DetectionSink = {
  onAmd(events: readonly AmdEvent[]): void;
  onDetectorError(error: unknown): void;
};

export class Detection {
  readonly #sink: DetectionSink;
  #detector: Detector | undefined;
  #isDone = false;
  #frames = 0;

  constructor(create: CreateDetector, settings: AmdSettings, sink: DetectionSink) {
    this.#sink = sink;
    try {
      this.#detector = create(settings);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** True once `amd_stopped` has been reported. */
  get done(): boolean {
    return this.#isDone;
  }

  /** What the call's plans hear. Undefined after `stop`, or if the detector has no ear. */
  get ear(): PlanEar | undefined {
    return this.#detector?.ear;
  }

  push(
    frame: Int16Array,
    lost: boolean,
    sentPower: number,
    heard: Int16Array,
    unheardMs: number,
  ): void {
    this.#frames += 1;
    this.#run((detector) => detector.push(frame, lost, sentPower, heard, unheardMs));
  }

  stop(reason: DetectionStop): void {
    if (this.#detector === undefined) return;
    this.#run((detector) => detector.stop(reason));
    this.#isDone = true;
    this.#detector = undefined;
  }

  #run(step: (detector: Detector) => readonly AmdEvent[]): void {
    const detector = this.#detector;
    if (detector === undefined) return;
    let events: readonly AmdEvent[];
    try {
      events = step(detector);
      this.#isDone = detector.done;
      if (detector.done && detector.ear === undefined) this.#detector = undefined;
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (events.length > 0) this.#sink.onAmd(events);
  }

  #fail(error: unknown): void {
    const wasDone = this.#isDone;
    this.#isDone = true;
    this.#detector = undefined;
    this.#sink.onDetectorError(error);
    if (!wasDone) this.#sink.onAmd(closingAmdEvents('detector-failed', this.#frames * frameMs));
  }
}
