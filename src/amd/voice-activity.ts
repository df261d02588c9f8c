// Is this frame speech? WebRTC's voice activity detector (libfvad, compiled to WebAssembly), which is easily taken in by
// quiet noise, with an energy floor that follows the line's own noise. Knows nothing of tones or of verdicts.

import loadFvad from '@echogarden/fvad-wasm';
import { frameSamples, sampleRateHz } from './frame.ts';

// Read once, when this module is: 20 kB from disk. Creating and using detectors is synchronous from then on.
const fvad = await loadFvad();

/** libfvad 0 to 3: how much evidence it wants before it calls something voice. */
const aggressiveness = 2;

/** Quieter than any voice that a caller would understand. */
const quietestSpeechDbfs = -44;
const aboveNoiseDb = 9;
/** A line noisier than this still lets speech through: nobody speaks below his own noise for long. */
const loudestFloorDbfs = -30;
/** The floor follows a falling level at once and a rising one slowly (dB a frame: 3 dB a second), past words and sentences. */
const floorRiseDb = 0.06;

export type VoiceActivity = {
  isSpeech(frame: Int16Array, energyDbfs: number): boolean;
  /** Gives the memory back; afterwards nothing is speech. Idempotent. */
  release(): void;
};

/** @throws Error when the detector's memory is exhausted. */
export function createVoiceActivity(): VoiceActivity {
  const samples = fvad._malloc(frameSamples * Int16Array.BYTES_PER_ELEMENT);
  const instance = samples === 0 ? 0 : fvad._fvad_new();
  if (instance === 0) {
    if (samples !== 0) fvad._free(samples);
    throw new Error('no memory for a voice activity detector');
  }
  fvad._fvad_set_sample_rate(instance, sampleRateHz);
  fvad._fvad_set_mode(instance, aggressiveness);
  let floorDbfs = loudestFloorDbfs;
  let released = false;

  return {
    isSpeech(frame, energyDbfs) {
      if (released) return false;
      floorDbfs = Math.min(energyDbfs, floorDbfs + floorRiseDb, loudestFloorDbfs);
      fvad.HEAP16.set(frame, samples / Int16Array.BYTES_PER_ELEMENT);
      const voiced = fvad._fvad_process(instance, samples, frameSamples) === 1;
      // The very first frames set the floor themselves: then the absolute level has to do.
      const neededDbfs = Math.max(quietestSpeechDbfs, Math.min(floorDbfs, -40) + aboveNoiseDb);
      return voiced && energyDbfs >= neededDbfs;
    },
    release() {
      if (released) return;
      released = true;
      fvad._fvad_free(instance);
      fvad._free(samples);
    },
  };
}
