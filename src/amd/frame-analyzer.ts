// Everything that listens to one call, frame by frame: levels, voice, tones, and what was said. Judges nothing, states nothing.

import type { Heard } from './event-grammar.ts';
import { frameSamples } from './frame.ts';
import { addFrame, addLostFrame, newRecentAudio, type RecentAudio } from './recent-audio.ts';
import { createToneDetector, type ToneDetector, type ToneStep } from './tones/tone-detector.ts';
import { createUtteranceTracker, type UtteranceTracker } from './voice/utterance.ts';
import { createVoiceActivity, type VoiceActivity } from './voice/voice-activity.ts';

/** One object, changed with every frame. */
export type HeardInDetail = Heard & {
  readonly speech: boolean;
  readonly tonal: boolean;
};

export type FrameAnalyzer = {
  /** The next 20 ms. `lost`: they never came. */
  analyze(frame: Int16Array, lost: boolean): HeardInDetail;
  /** Forgets what was said: the next to speak is another voice. */
  restart(): void;
  /** Gives memory back; afterwards nothing is heard. */
  release(): void;
};

/** Digital silence from one frame to the next is a lost packet that a gateway before us filled; for longer it is silence. */
const longestFilledFrames = 3;
const silentPower = 1e-9;
const loudPower = 1e-6;

type Listening = {
  readonly recent: RecentAudio;
  readonly voiceActivity: VoiceActivity;
  readonly tones: ToneDetector;
  readonly utterances: UtteranceTracker;
  readonly heard: { -readonly [Member in keyof HeardInDetail]: HeardInDetail[Member] };
  /** Frames on end that were taken for lost. */
  filledFrames: number;
  lastPower: number;
};

/** @throws Error when the memory of WebAssembly is exhausted. */
export function openFrameAnalyzer(): FrameAnalyzer {
  const recent = newRecentAudio();
  const listening: Listening = {
    recent,
    voiceActivity: createVoiceActivity(recent),
    tones: createToneDetector(recent),
    utterances: createUtteranceTracker(),
    heard: {
      utterance: undefined,
      found: undefined,
      tonePending: false,
      toneHz: 0,
      speech: false,
      tonal: false,
      ending: undefined,
    },
    filledFrames: 0,
    lastPower: 0,
  };
  return {
    analyze: (frame, lost) => analyze(listening, frame, lost),
    restart: () => listening.utterances.restart(),
    release: () => listening.voiceActivity.release(),
  };
}

function analyze(listening: Listening, frame: Int16Array, lost: boolean): HeardInDetail {
  const { utterances, heard, recent } = listening;
  const missing = lost || frame.length !== frameSamples;
  if (missing) addLostFrame(recent);
  else addFrame(recent, frame);
  heard.speech = false;
  const tone =
    missing || isFilled(listening, recent.power) ? skip(listening) : hear(listening, frame);
  heard.utterance = utterances.current();
  heard.found = tone.found;
  heard.tonePending = tone.pending;
  heard.toneHz = tone.hz;
  heard.tonal = tone.tonal;
  heard.ending = tone.ending;
  return heard;
}

function skip({ tones, utterances }: Listening): ToneStep {
  utterances.skip();
  return tones.skip(utterances.current() !== undefined);
}

function hear(listening: Listening, frame: Int16Array): ToneStep {
  const { recent, tones, utterances, voiceActivity, heard } = listening;
  listening.filledFrames = 0;
  listening.lastPower = recent.power;
  const tone = tones.push(utterances.current() !== undefined);
  if (tone.found !== undefined) utterances.wasTone();
  const voice = voiceActivity.push(frame, tone.tonal);
  if (utterances.push(voice)) voiceActivity.confirm();
  heard.speech = voice.speech;
  return tone;
}

function isFilled(listening: Listening, power: number): boolean {
  if (power > silentPower || listening.lastPower < loudPower) return false;
  listening.filledFrames += 1;
  return listening.filledFrames <= longestFilledFrames;
}
