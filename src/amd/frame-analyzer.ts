// Everything that listens to one call, frame by frame: levels, voice, tones, and what was said. Judges nothing, states nothing.

import type { Heard } from './event-grammar.ts';
import { frameSamples } from './frame.ts';
import { addFrame, addLostFrame, newRecentAudio } from './recent-audio.ts';
import { createToneDetector, type ToneStep } from './tones/tone-detector.ts';
import { createUtteranceTracker } from './voice/utterance.ts';
import { createVoiceActivity, type VoiceActivity } from './voice/voice-activity.ts';

/** One object, changed with every frame. */
export type HeardInDetail = Heard & {
  readonly speech: boolean;
  readonly tonal: boolean;
};

/** Digital silence from one frame to the next is a lost packet that a gateway before us filled; for longer it is silence. */
const longestFilledFrames = 3;
const silentPower = 1e-9;
const loudPower = 1e-6;

export class FrameAnalyzer {
  readonly #recent = newRecentAudio();
  readonly #voiceActivity: VoiceActivity;
  readonly #tones = createToneDetector(this.#recent);
  readonly #utterances = createUtteranceTracker();
  readonly #heard: { -readonly [Member in keyof HeardInDetail]: HeardInDetail[Member] } = {
    utterance: undefined,
    found: undefined,
    tonePending: false,
    toneHz: 0,
    speech: false,
    tonal: false,
    ending: undefined,
  };
  /** Frames on end that were taken for lost. */
  #filledFrames = 0;
  #lastPower = 0;

  /** @throws Error when the memory of WebAssembly is exhausted. */
  constructor() {
    this.#voiceActivity = createVoiceActivity(this.#recent);
  }

  /** The next 20 ms. `lost`: they never came. */
  analyze(frame: Int16Array, lost: boolean): HeardInDetail {
    const heard = this.#heard;
    const recent = this.#recent;
    const missing = lost || frame.length !== frameSamples;
    if (missing) addLostFrame(recent);
    else addFrame(recent, frame);
    heard.speech = false;
    const tone = missing || this.#isFilled(recent.power) ? this.#skip() : this.#hear(frame);
    heard.utterance = this.#utterances.current();
    heard.found = tone.found;
    heard.tonePending = tone.pending;
    heard.toneHz = tone.hz;
    heard.tonal = tone.tonal;
    heard.ending = tone.ending;
    return heard;
  }

  /** Forgets what was said: the next to speak is another voice. */
  restart(): void {
    this.#utterances.restart();
  }

  /** Gives memory back; afterwards nothing is heard. */
  release(): void {
    this.#voiceActivity.release();
  }

  #skip(): ToneStep {
    this.#utterances.skip();
    return this.#tones.skip(this.#utterances.current() !== undefined);
  }

  #hear(frame: Int16Array): ToneStep {
    const utterances = this.#utterances;
    this.#filledFrames = 0;
    this.#lastPower = this.#recent.power;
    const tone = this.#tones.push(utterances.current() !== undefined);
    if (tone.found !== undefined) utterances.wasTone();
    const voice = this.#voiceActivity.push(frame, tone.tonal);
    if (utterances.push(voice)) this.#voiceActivity.confirm();
    this.#heard.speech = voice.speech;
    return tone;
  }

  #isFilled(power: number): boolean {
    if (power > silentPower || this.#lastPower < loudPower) return false;
    this.#filledFrames += 1;
    return this.#filledFrames <= longestFilledFrames;
  }
}
