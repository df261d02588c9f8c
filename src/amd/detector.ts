// Answering machine detection on one call: frames of the far end's audio in, AMD events out. Pure apart from the memory of
// its voice activity detector: the same frames give the same events, however fast they come.

import type { AmdEvent, AmdSettings } from '../calls/call-types.ts';
import { createEventGrammar, type Heard } from './event-grammar.ts';
import { decibels, frameSamples, meanSquare } from './frame.ts';
import type { Understood } from './stt/understood.ts';
import { createToneDetector, type ToneDetector, type ToneStep } from './tone-detector.ts';
import { createUtteranceTracker, type UtteranceTracker } from './utterance.ts';
import { createVoiceActivity, type VoiceActivity } from './voice-activity.ts';

export type Detector = {
  /**
   * The next 20 ms since the 200 OK: 160 samples at 8 kHz. `lost`: they never came (their content is not looked at, the
   * time passes). Returns what became known with this frame, usually nothing. Never throws; after `done` it does nothing.
   */
  push(frame: Int16Array, lost: boolean): readonly AmdEvent[];
  /** A recogniser's words so far: counted instead of ours from the next frame on, while they keep up with the audio. */
  understand(understood: Understood): void;
  /** The call ended: `amd_stopped` with this reason, unless it was stated before. Also frees memory: call it always. */
  stop(reason: string): readonly AmdEvent[];
  /** `amd_stopped` was returned. */
  readonly done: boolean;
};

export type CreateDetector = (settings: AmdSettings) => Detector;

const nothing: readonly AmdEvent[] = [];

export const createDetector: CreateDetector = (settings) => {
  const grammar = createEventGrammar(settings, () => ears?.utterances.restart());
  let ears: Ears | undefined;

  function finish(events: readonly AmdEvent[]): readonly AmdEvent[] {
    if (grammar.done) {
      ears?.voiceActivity.release();
      ears = undefined;
    }
    return events;
  }

  return {
    get done() {
      return grammar.done;
    },
    push(frame, lost) {
      if (grammar.done) return nothing;
      try {
        ears ??= openEars();
        return finish(grammar.advance(listen(ears, frame, lost)));
      } catch {
        // WebAssembly out of memory is all that can fail here; the call itself must not.
        return finish(grammar.fail());
      }
    },
    understand(understood) {
      grammar.understand(understood);
    },
    stop(reason) {
      return finish(grammar.stop(reason));
    },
  };
};

type Ears = {
  readonly voiceActivity: VoiceActivity;
  readonly tones: ToneDetector;
  readonly utterances: UtteranceTracker;
  /** What the last frame came to: changed in place, fifty times a second for each call. */
  readonly heard: { -readonly [Member in keyof Heard]: Heard[Member] };
  /** Frames on end that were taken for lost. */
  filledFrames: number;
  lastPower: number;
};

/** Digital silence from one frame to the next is a lost packet that somebody before us filled; for longer it is silence. */
const longestFilledFrames = 3;
const silentPower = 1e-9;
const loudPower = 1e-6;

function openEars(): Ears {
  return {
    voiceActivity: createVoiceActivity(),
    tones: createToneDetector(),
    utterances: createUtteranceTracker(),
    heard: { utterance: undefined, found: undefined, tonePending: false },
    filledFrames: 0,
    lastPower: 0,
  };
}

function listen(ears: Ears, frame: Int16Array, lost: boolean): Heard {
  const { utterances, heard } = ears;
  const missing = lost || frame.length !== frameSamples;
  const power = missing ? 0 : meanSquare(frame);
  const tone = missing || isFilled(ears, power) ? skip(ears) : hear(ears, frame, power);
  heard.utterance = utterances.current();
  heard.found = tone.found;
  heard.tonePending = tone.pending;
  return heard;
}

function skip({ tones, utterances }: Ears): ToneStep {
  utterances.skip();
  return tones.skip();
}

function hear(ears: Ears, frame: Int16Array, power: number): ToneStep {
  const { tones, utterances, voiceActivity } = ears;
  ears.filledFrames = 0;
  ears.lastPower = power;
  const tone = tones.push(frame, decibels(power), utterances.current() !== undefined);
  if (tone.found !== undefined) utterances.wasTone();
  const voice = voiceActivity.push(frame, power, tone.tonal);
  if (utterances.push(voice)) voiceActivity.confirm();
  return tone;
}

function isFilled(ears: Ears, power: number): boolean {
  if (power > silentPower || ears.lastPower < loudPower) return false;
  ears.filledFrames += 1;
  return ears.filledFrames <= longestFilledFrames;
}
