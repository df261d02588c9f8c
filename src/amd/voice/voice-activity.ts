// Decides whether a frame contains a voice that's speaking into the phone. WebRTC's voice activity
// detector (libfvad, compiled to WebAssembly) is easily misled by noise, so in addition we check
// the line's levels, and whether the sound is periodic like a voice.

import loadFvad from '@echogarden/fvad-wasm';
import { frameSamples, sampleRateHz, silenceDbfs } from '../frame.ts';
import type { RecentAudio } from '../recent-audio.ts';
import { createLineLevel } from './line-level.ts';
import { createVoicing } from './voicing.ts';

// Loaded once together with this module (20 kB from disk), so that detectors can be created and
// used synchronously.
const fvad = await loadFvad();
/** WebAssembly memory for the frame that's being analysed. All calls share it. */
const samples = fvad._malloc(frameSamples * Int16Array.BYTES_PER_ELEMENT);

/**
 * libfvad's mode, from 0 to 3. Mode 3 requires the most evidence before a sound counts as a voice.
 */
const aggressiveness = 3;
/**
 * Most of a vowel's power is below 1 kHz, where neighbouring samples are similar. Buzzers are above
 * 1.9 kHz.
 */
const minNeighbours = 0.1;

/**
 * Classification of the latest frame. The object is reused, so its fields change with every frame.
 */
export type Voice = {
  /** Resembles speech and is loud enough for speech. */
  readonly speech: boolean;
  /**
   * Resembles speech, but the tone detector classifies it as a tone. It may be a steady vowel, or
   * it may be a tone that misleads the voice detector.
   */
  readonly tonal: boolean;
  /** Speech from the vocal cords: a vowel or another voiced sound. */
  readonly voiced: boolean;
  /** About as loud as the voice so far, which means that it isn't in the background. */
  readonly inFront: boolean;
  /** Mean level over about 60 ms. */
  readonly dbfs: number;
  /** Mean level over about 100 ms. */
  readonly loudnessDbfs: number;
};

export type VoiceActivity = {
  /** Classifies the latest frame, which must already be in the recent audio. */
  push(frame: Int16Array, tonal: boolean): Voice;
  /**
   * Call this if the last frame contained the voice in front (see line-level.ts), because later
   * frames are compared with that voice's level.
   */
  confirm(): void;
  /** Frees the memory. After that, `push` doesn't analyse frames any more. Idempotent. */
  release(): void;
};

/** @throws Error if the detector's memory has run out */
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
      voice.voiced = voice.speech && recent.neighbours >= minNeighbours && voicing.isVoiced();
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
