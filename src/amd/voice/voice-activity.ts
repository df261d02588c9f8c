// Is this frame a voice that speaks into the telephone? WebRTC's voice activity detector (libfvad, compiled to WebAssembly),
// which is easily taken in by noise, over the line's levels and the periodicity of voices. Knows nothing of verdicts.

import loadFvad from '@echogarden/fvad-wasm';
import { frameSamples, sampleRateHz, silenceDbfs } from '../frame.ts';
import type { RecentAudio } from '../recent-audio.ts';
import { createLineLevel } from './line-level.ts';
import { createVoicing } from './voicing.ts';

// Read once, when this module is: 20 kB from disk. Creating and using detectors is synchronous from then on.
const fvad = await loadFvad();
/** What it shall look at next, of whichever call. */
const samples = fvad._malloc(frameSamples * Int16Array.BYTES_PER_ELEMENT);

/** libfvad 0 to 3: how much evidence it wants before it calls something voice. */
const aggressiveness = 3;
/** Vowels have most of their power below 1 kHz, where neighbouring samples are alike; buzzers lie above 1.9 kHz. */
const leastNeighbours = 0.1;

/** Of the latest frame. One object, changed with every frame. */
export type Voice = {
  /** Sounds like speech and is loud enough for it. */
  readonly speech: boolean;
  /** Would be, but for a tone detector that takes it for a tone: a steady vowel, or a tone that fools the rest of us. */
  readonly tonal: boolean;
  /** And is a vowel or another sound of the vocal cords. */
  readonly voiced: boolean;
  /** As loud as the voice before it, and none in the background. */
  readonly inFront: boolean;
  /** Over about 60 ms. */
  readonly dbfs: number;
  /** Over about 100 ms. */
  readonly loudnessDbfs: number;
};

export type VoiceActivity = {
  /** The latest frame of the recent audio, which is this one. */
  push(frame: Int16Array, tonal: boolean): Voice;
  /** The last frame belonged to the one who speaks: others are compared with it. */
  confirm(): void;
  /** Gives the memory back; afterwards nothing is speech. Idempotent. */
  release(): void;
};

/** @throws Error when the detector's memory is exhausted. */
export function createVoiceActivity(recent: RecentAudio): VoiceActivity {
  const instance = samples === 0 ? 0 : fvad._fvad_new();
  if (instance === 0) throw new Error('no memory for a voice activity detector');
  fvad._fvad_set_sample_rate(instance, sampleRateHz);
  fvad._fvad_set_mode(instance, aggressiveness);
  const level = createLineLevel();
  const voicing = createVoicing(recent);
  const voice = {
    speech: false,
    tonal: false,
    voiced: false,
    inFront: false,
    dbfs: silenceDbfs,
    loudnessDbfs: silenceDbfs,
  };
  let released = false;

  return {
    push(frame, tonal) {
      if (released) return voice;
      level.push(recent.power, recent.dbfs);
      fvad.HEAP16.set(frame, samples / Int16Array.BYTES_PER_ELEMENT);
      const likely = fvad._fvad_process(instance, samples, frameSamples) === 1;
      const speechLike = likely && level.above;
      voice.speech = speechLike && !tonal;
      voice.tonal = speechLike && tonal;
      voice.voiced = voice.speech && recent.neighbours >= leastNeighbours && voicing.isVoiced();
      voice.inFront = level.inFront;
      voice.dbfs = level.dbfs;
      voice.loudnessDbfs = level.loudnessDbfs;
      return voice;
    },
    confirm() {
      level.heardVoice();
    },
    release() {
      if (released) return;
      released = true;
      fvad._fvad_free(instance);
    },
  };
}
