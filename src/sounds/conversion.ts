// Converts a WAV file, whether uploaded or fetched by URL, to the 8 kHz µ-law that calls play.

import { encodeMulawFrame } from '../media/g711.ts';
import { filterCost, resample } from './resample.ts';
import { openWav, type WavFile } from './wav-file.ts';

export type Conversion =
  | { readonly ok: true; readonly mulaw: Uint8Array<ArrayBuffer> }
  | { readonly ok: false; readonly problem: string };

export const maxFileBytes = 10 * 1_024 * 1_024;
const maxMinutes = 10;
const maxMs = maxMinutes * 60_000;
const maxRateHz = 48_000;
const outputRateHz = 8_000;

/**
 * If a conversion needs more inner loop steps than this, it doesn't run on the main thread. A step
 * takes about 2 ns.
 */
const maxQuickSteps = 1_000_000;

/**
 * Converts a file. This never throws, not even for garbage. Instead, `problem` describes what is
 * wrong with the file.
 */
export function convert(file: Buffer): Conversion {
  const opened = openSound(file);
  if (!opened.ok) return opened;
  const { wav } = opened;
  const samples = resample(mixToMono(wav), wav.sampleRateHz, outputRateHz);
  if (samples.length === 0) return { ok: false, problem: 'no audio data in the file' };
  const mulaw = new Uint8Array(samples.length);
  encodeMulawFrame(samples, mulaw);
  return { ok: true, mulaw };
}

/** Checks whether the conversion is short enough for the main thread. */
export function isQuick(file: Buffer): boolean {
  const opened = openSound(file);
  if (!opened.ok) return true;
  const { length, channels, sampleRateHz } = opened.wav;
  const cost = filterCost(sampleRateHz, outputRateHz);
  const outputs = (length * outputRateHz) / sampleRateHz;
  return 5 * length * channels + outputs * cost.perSample + cost.once <= maxQuickSteps;
}

function openSound(
  file: Buffer,
): { readonly ok: true; readonly wav: WavFile } | { readonly ok: false; readonly problem: string } {
  if (file.length > maxFileBytes) {
    return { ok: false, problem: `larger than ${maxFileBytes / 1_024 / 1_024} MiB` };
  }
  const opened = openWav(file, { maxRateHz });
  if (!opened.ok) return opened;
  const { channels, length, sampleRateHz } = opened.wav;
  if (channels > 2) return { ok: false, problem: `${channels} channels; 1 or 2 are supported` };
  const isTooLong = (length / sampleRateHz) * 1_000 > maxMs;
  return isTooLong ? { ok: false, problem: `longer than ${maxMinutes} minutes` } : opened;
}

function mixToMono({ length, channels, sampleAt }: WavFile): Int16Array {
  const samples = new Int16Array(length);
  for (let index = 0; index < length; index += 1) {
    samples[index] =
      channels === 1 ? sampleAt(index, 0) : (sampleAt(index, 0) + sampleAt(index, 1)) >> 1;
  }
  return samples;
}
