// Synthesises tones of machines, networks, keys and instruments, and runs the tone detector on
// them.

import { frameMs, frameSamples } from '../../src/amd/frame.ts';
import { addFrame, addLostFrame, newRecentAudio } from '../../src/amd/recent-audio.ts';
import { createToneDetector, type ToneFound } from '../../src/amd/tones/tone-detector.ts';
import { joined, sampleRateHz, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import type { Random } from './made-up-audio.ts';

export type Reported = ToneFound & { readonly atMs: number };

export type Hearing = {
  readonly afterSpeech?: boolean;
  /** Indices of the frames that never arrived. */
  readonly lost?: ReadonlySet<number>;
};

/** Returns everything that the detector reports for these samples and a second of silence. */
export function hear(samples: Int16Array, { afterSpeech = true, lost }: Hearing = {}): Reported[] {
  const recent = newRecentAudio();
  const detector = createToneDetector(recent);
  const all = joined([samples, silence(1_000)]);
  const frame = new Int16Array(frameSamples);
  const reported: Reported[] = [];
  for (let index = 0; index * frameSamples < all.length; index += 1) {
    frame.fill(0);
    frame.set(all.subarray(index * frameSamples, (index + 1) * frameSamples));
    const isLost = lost?.has(index) === true;
    if (isLost) addLostFrame(recent);
    else addFrame(recent, frame);
    const { found } = isLost ? detector.skip(afterSpeech) : detector.push(afterSpeech);
    if (found !== undefined) reported.push({ ...found, atMs: (index + 1) * frameMs });
  }
  return reported;
}

/** The pitch at a point of the tone: as a share of its length (0 to 1), and in seconds. */
export type Pitch = (part: number, seconds: number) => number;

/** Makes a sine whose pitch moves. `shape` changes its wave, which goes from −1 to 1. */
export function moving(
  pitch: Pitch,
  ms: number,
  levelDbfs: number,
  shape: (wave: number, part: number) => number = (wave) => wave,
): Int16Array {
  const count = ms * 8;
  const amplitude = 32_767 * 10 ** (levelDbfs / 20);
  let phase = 0;
  return Int16Array.from({ length: count }, (_, index) => {
    const part = index / count;
    phase += (2 * Math.PI * pitch(part, index / sampleRateHz)) / sampleRateHz;
    return Math.round(amplitude * shape(Math.sin(phase), part));
  });
}

/** Makes a square wave as a telephone line filters it: with harmonics up to the third. */
export function square(hz: number, ms: number, levelDbfs: number): Int16Array {
  const third = tone([3 * hz], ms, levelDbfs - 9.5);
  return mixed(tone([hz], ms, levelDbfs), third);
}

export function mixed(one: Int16Array, other: Int16Array): Int16Array {
  const [longer, shorter] = one.length >= other.length ? [one, other] : [other, one];
  return longer.map((sample, index) => clip(sample + (shorter[index] ?? 0)));
}

/** Adds white noise of this level to all samples. */
export function noisy(random: Random, samples: Int16Array, levelDbfs: number): Int16Array {
  // Uniform between −a and a, so its root mean square is a / √3.
  const amplitude = 32_767 * Math.sqrt(3) * 10 ** (levelDbfs / 20);
  return samples.map((sample) => clip(sample + (random() * 2 - 1) * amplitude));
}

function clip(value: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(value)));
}

/** Repeats a tone and the pause after it. */
export function cadence(
  frequenciesHz: readonly number[],
  onMs: number,
  offMs: number,
  times: number,
): Int16Array {
  const once = joined([tone(frequenciesHz, onMs, -16), silence(offMs)]);
  return joined(Array.from({ length: times }, () => once));
}
