// One call's detector with a provider beside it. The test moves its clock by hand and reads the
// events.

import { createDetector } from '../../../src/amd/detector.ts';
import type { SpeechToTextProvider } from '../../../src/amd/stt/providers.ts';
import {
  createTranscribedDetector,
  type FailureReport,
} from '../../../src/amd/stt/transcribed-detector.ts';
import type { Transcription } from '../../../src/amd/stt/transcription.ts';
import {
  type AmdSettings,
  defaultAmdTimers,
  type SpeechToTextSettings,
} from '../../../src/calls/call-types.ts';
import type { AmdEvent, AmdEventName } from '../../../src/calls/detection/amd-event.ts';
import type { DetectionStop } from '../../../src/calls/detection/amd-reasons.ts';
import { eventually } from '../../support/eventually.ts';
import type { EngineKind } from './scripted-engine.ts';

export const asked: SpeechToTextSettings = { sttProvider: 'engine', sttLanguage: 'en-US' };

export type CallOptions = {
  readonly url: string;
  readonly kind?: EngineKind;
  readonly provider?: Partial<SpeechToTextProvider>;
  readonly speechToText?: SpeechToTextSettings | undefined;
  /** Used for names that are not configured. */
  readonly defaultProvider?: string;
  readonly thresholdWordCount?: number;
};

export class TranscribedCall {
  readonly events: AmdEvent[] = [];
  readonly failures: FailureReport[] = [];
  readonly transcriptions: Transcription[] = [];
  readonly #detector: ReturnType<ReturnType<typeof createTranscribedDetector>>;
  #audio: Int16Array = new Int16Array(0);
  elapsedMs = 0;

  constructor({ url, kind = 'websocket', provider, ...asks }: CallOptions) {
    const speechToText = 'speechToText' in asks ? asks.speechToText : asked;
    const settings: AmdSettings = {
      timers: defaultAmdTimers,
      ...(asks.thresholdWordCount === undefined
        ? {}
        : { thresholdWordCount: asks.thresholdWordCount }),
      ...(speechToText === undefined ? {} : { speechToText }),
    };
    const create = createTranscribedDetector({
      createDetector: (given) => this.#observed(createDetector(given)),
      speechToText: {
        providers: new Map([['engine', { kind, url, parameters: {}, ...provider }]]),
        defaultProvider: asks.defaultProvider,
      },
      onFailed: (failure) => this.failures.push(failure),
    });
    this.#detector = create(settings);
  }

  get done(): boolean {
    return this.#detector.done;
  }

  get names(): AmdEventName[] {
    return this.events.map(({ event }) => event);
  }

  event(name: AmdEventName): AmdEvent | undefined {
    return this.events.find(({ event }) => event === name);
  }

  /** Sets what the far end says from the answer on, followed by silence. */
  play(audio: Int16Array): void {
    this.#audio = audio;
  }

  pushUntil(ms: number): void {
    while (this.elapsedMs < ms && !this.done) {
      const at = this.elapsedMs * 8;
      const frame = new Int16Array(160);
      frame.set(this.#audio.subarray(at, at + 160));
      this.events.push(...this.#detector.push(frame, false));
      this.elapsedMs += 20;
    }
  }

  /** Loses a frame. What is heard in its place has this level. */
  pushLost(level: number): void {
    const heard = new Int16Array(160).fill(level);
    this.events.push(...this.#detector.push(new Int16Array(160), true, 0, heard));
    this.elapsedMs += 20;
  }

  /** Waits until the detector has this many results. */
  async untilUnderstood(count: number): Promise<void> {
    await eventually(() => this.transcriptions.length >= count, `${count} results have arrived`);
  }

  async untilFailed(): Promise<void> {
    await eventually(() => this.failures.length > 0, 'the provider is given up');
  }

  stop(reason: DetectionStop = 'call-ended'): void {
    this.events.push(...this.#detector.stop(reason));
  }

  #observed(detector: ReturnType<typeof createDetector>) {
    return {
      get done() {
        return detector.done;
      },
      push: (...frame: Parameters<typeof detector.push>) => detector.push(...frame),
      stop: (reason: DetectionStop) => detector.stop(reason),
      understand: (transcription: Transcription) => {
        this.transcriptions.push(transcription);
        detector.understand(transcription);
      },
    };
  }
}
