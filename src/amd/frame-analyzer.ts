// Analyses one call frame by frame, which includes the level, voice, tones, and what has been said.
// The verdicts and events that follow from the analysis are produced in event-grammar.ts.

import type { Heard } from './event-grammar.ts';
import { frameSamples } from './frame.ts';
import { addFrame, addLostFrame, newRecentAudio } from './recent-audio.ts';
import { createToneDetector, type ToneStep } from './tones/tone-detector.ts';
import { createUtteranceTracker } from './voice/utterance.ts';
import { createVoiceActivity, type VoiceActivity } from './voice/voice-activity.ts';

/**
 * What we heard in one frame, with details for the ear (see plan-ear.ts) and for plots. The object
 * is reused, so its fields change with every frame.
 */
export type HeardInDetail = Heard & {
  readonly speech: boolean;
  readonly tonal: boolean;
};

/**
 * If the line drops to digital silence from one frame to the next, an upstream gateway has probably
 * filled in for a lost packet. If the digital silence lasts longer than this, it's real.
 */
const maxFilledFrames = 3;
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
  /** Number of consecutive frames of digital silence that we've treated as lost. */
  #filledFrames = 0;
  #lastPower = 0;

  /** @throws Error if WebAssembly has run out of memory */
  constructor() {
    this.#voiceActivity = createVoiceActivity(this.#recent);
  }

  /** Analyses the next 20 ms. Set `lost` if the frame never arrived. */
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

  /** Forgets what has been said so far, because somebody else is going to speak next. */
  restart(): void {
    this.#utterances.restart();
  }

  /** Frees the memory. Don't use the analyser afterwards. */
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
    if (tone.found !== undefined) utterances.discardTone();
    const voice = this.#voiceActivity.push(frame, tone.tonal);
    if (utterances.push(voice)) this.#voiceActivity.confirm();
    this.#heard.speech = voice.speech;
    return tone;
  }

  #isFilled(power: number): boolean {
    if (power > silentPower || this.#lastPower < loudPower) return false;
    this.#filledFrames += 1;
    return this.#filledFrames <= maxFilledFrames;
  }
}
