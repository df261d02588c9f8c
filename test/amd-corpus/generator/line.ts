// Simulates what the line does to an answer: level, telephone band, noise, codec, losses.

import { decodeTable, encode } from '../../../src/media/g711.ts';
import type { Random } from '../../amd/made-up-audio.ts';
import { colours, noiseOf } from './made-sounds.ts';
import { between, pick } from './scene.ts';

export type LineState = {
  readonly dbfs: number;
  readonly noise: string;
  readonly codec: 'PCMA' | 'PCMU' | 'gsm' | 'none';
  readonly lossPercent: number;
};

/**
 * Sends samples over a simulated line. GSM needs an external program, so the caller applies that
 * codec.
 */
export function overTheLine(
  samples: Float64Array,
  random: Random,
): { readonly samples: Int16Array; readonly state: LineState } {
  // Speech was made at -20 dBFS.
  const dbfs = between(random, -34, -14);
  const gain = 10 ** ((dbfs + 20) / 20);
  const noisy = random() < 0.6;
  const snrDb = between(random, 12, 40);
  const colour = pick(random, colours);
  const floorDbfs = noisy ? dbfs - snrDb : -75;
  const noise = noiseOf(colour, samples.length / 8, floorDbfs, Math.floor(random() * 1e9));
  const band = random() < 0.5 ? narrowed(samples) : samples;
  const mixed = Int16Array.from(band, (sample, index) =>
    clipped(sample * gain + (noise[index] ?? 0)),
  );
  const codec = pick(random, ['PCMA', 'PCMU', 'PCMA', 'PCMU', 'gsm', 'none'] as const);
  const lossPercent = pick(random, [0, 0, 0, 1, 3]);
  const coded = codec === 'PCMA' || codec === 'PCMU' ? roundTrip(codec, mixed) : mixed;
  if (lossPercent > 0) lose(coded, lossPercent, random);
  return {
    samples: coded,
    state: {
      dbfs: Math.round(dbfs),
      noise: noisy ? `${colour} ${Math.round(snrDb)} dB below` : '',
      codec,
      lossPercent,
    },
  };
}

function clipped(sample: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(sample)));
}

function roundTrip(codec: 'PCMA' | 'PCMU', samples: Int16Array): Int16Array {
  return Int16Array.from(encode(codec, samples), (byte) => decodeTable[codec][byte] ?? 0);
}

/** Replaces lost packets by silence, as a gateway before Offhook would. */
function lose(samples: Int16Array, percent: number, random: Random): void {
  for (let at = 0; at < samples.length; at += 160) {
    if (random() * 100 < percent) samples.fill(0, at, at + 160);
  }
}

/** Filters to 300 to 3,400 Hz with two second-order filters (Bristow-Johnson's cookbook). */
function narrowed(samples: Float64Array): Float64Array {
  return filtered(filtered(samples, 'high', 300), 'low', 3_400);
}

function filtered(samples: Float64Array, kind: 'high' | 'low', hz: number): Float64Array {
  const angle = (2 * Math.PI * hz) / 8_000;
  const alpha = Math.sin(angle) / Math.SQRT2;
  const cosine = Math.cos(angle);
  const edge = kind === 'high' ? 1 + cosine : 1 - cosine;
  const [b0, b1] = [edge / 2, kind === 'high' ? -edge : edge];
  const [a0, a1, a2] = [1 + alpha, -2 * cosine, 1 - alpha];
  let [x1, x2, y1, y2] = [0, 0, 0, 0];
  return samples.map((x) => {
    const y = (b0 * x + b1 * x1 + b0 * x2 - a1 * y1 - a2 * y2) / a0;
    [x2, x1, y2, y1] = [x1, x, y1, y];
    return y;
  });
}
