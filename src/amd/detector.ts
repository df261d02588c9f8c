// Answering machine detection on one call: frames of the far end's audio in, AMD events out. Pure apart from the memory of
// its voice activity detector: the same frames give the same events, however fast they come.

import type { AmdEvent, AmdSettings } from '../calls/call-types.ts';
import { createEventGrammar, type Heard } from './event-grammar.ts';
import { energyDbfs, frameSamples } from './frame.ts';
import type { Understood } from './stt/understood.ts';
import { createToneDetector, type ToneDetector } from './tone-detector.ts';
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

export const createDetector: CreateDetector = (settings) => {
  const grammar = createEventGrammar(settings);
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
      if (grammar.done) return [];
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
};

function openEars(): Ears {
  return {
    voiceActivity: createVoiceActivity(),
    tones: createToneDetector(),
    utterances: createUtteranceTracker(),
  };
}

function listen(ears: Ears, frame: Int16Array, lost: boolean): Heard {
  const { voiceActivity, tones, utterances } = ears;
  if (lost || frame.length !== frameSamples) {
    utterances.skip();
    const { found, pending } = tones.skip();
    return { utterance: utterances.current(), found, tonePending: pending };
  }
  const energy = energyDbfs(frame);
  const tone = tones.push(frame, energy, utterances.current() !== undefined);
  const speech = voiceActivity.isSpeech(frame, energy) && !tone.tonal;
  utterances.push(speech, energy);
  return { utterance: utterances.current(), found: tone.found, tonePending: tone.pending };
}
