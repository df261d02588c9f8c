// Synthetic sounds: beeps, appliances, network tones, noises. Samples are floats at the scale of 16
// bits.

import { type Random, seededRandom } from '../../amd/made-up-audio.ts';
import type { Appliance, BeepModel } from './sounds.ts';

const perMs = 8;
const sampleRateHz = 8_000;
const edgeMs = 4;

function amplitude(dbfs: number): number {
  return 32_767 * 10 ** (dbfs / 20);
}

/** The fade at both ends: rises from 0 to 1 and falls back. */
function edges(index: number, length: number, ms = edgeMs): number {
  return Math.min(1, index / (ms * perMs), (length - 1 - index) / (ms * perMs));
}

export function sines(hz: readonly number[], ms: number, dbfs: number): Float64Array {
  const length = Math.round(ms * perMs);
  const peak = amplitude(dbfs);
  return Float64Array.from({ length }, (_, index) => {
    let sum = 0;
    for (const each of hz) sum += Math.sin((2 * Math.PI * each * index) / sampleRateHz);
    return peak * edges(index, length) * sum;
  });
}

export function joinedSounds(parts: readonly ArrayLike<number>[]): Float64Array {
  const whole = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part as Float64Array, at);
    at += part.length;
  }
  return whole;
}

export function quiet(ms: number): Float64Array {
  return new Float64Array(Math.max(0, Math.round(ms * perMs)));
}

/** Makes this device's beep. Level and length vary a little. */
export function beepOf(model: BeepModel, random: Random): Float64Array {
  const ms = model.ms * (0.95 + 0.1 * random());
  const dbfs = model.dbfs + 4 * (random() - 0.5);
  const [first = 1_000, last = first] = [model.hz[0], model.hz.at(-1)];
  const peak = amplitude(dbfs);
  const length = Math.round(ms * perMs);
  switch (model.way) {
    case 'together':
      return sines(model.hz, ms, dbfs);
    case 'in turn':
      return joinedSounds(model.hz.map((hz) => sines([hz], ms / model.hz.length, dbfs)));
    case 'decaying':
      return sines([first], ms, dbfs).map((sample, index) => sample * Math.exp(-index / (ms * 4)));
    case 'square':
      return sines([first], ms, 0).map((sample) => Math.sign(sample) * peak * 0.7);
    case 'sweep': {
      let phase = 0;
      return Float64Array.from({ length }, (_, index) => {
        phase += (2 * Math.PI * (first + ((last - first) * index) / length)) / sampleRateHz;
        return peak * edges(index, length) * Math.sin(phase);
      });
    }
  }
}

/** Makes one run of the appliance's cadence as a room carries it: an edge of 15 ms, and an echo. */
export function applianceOf(model: Appliance, random: Random): Float64Array {
  const once = joinedSounds(
    model.hz.flatMap((hz) => [ringing(hz, model), quiet(model.hz.length > 1 ? model.offMs : 0)]),
  );
  const cadence = model.hz.length > 1 ? once : joinedSounds([once, quiet(model.offMs)]);
  return echoed(joinedSounds(Array.from({ length: model.times }, () => cadence)), random);
}

function ringing(hz: number, { onMs, harmonics, decayMs, dbfs }: Appliance): Float64Array {
  const length = Math.round(onMs * perMs);
  const peak = amplitude(dbfs);
  return Float64Array.from({ length }, (_, index) => {
    let sum = 0;
    for (let part = 1; part * hz < 3_800 && part <= 4; part += 1) {
      sum += harmonics ** (part - 1) * Math.sin((2 * Math.PI * hz * part * index) / sampleRateHz);
    }
    const decay = decayMs === undefined ? 1 : Math.exp(-index / (decayMs * perMs));
    return peak * edges(index, length, 15) * decay * sum;
  });
}

const reflections = 70;

/**
 * Adds a room of random size. Its reflections become denser and die away within the reverberation
 * time (60 dB in 0.25 to 0.7 s).
 */
export function echoed(samples: Float64Array, random: Random): Float64Array {
  const reverberationMs = 250 + 450 * random();
  /**
   * Level of all reflections together relative to the direct sound. A more distant source has a
   * higher level.
   */
  const gain = 10 ** (-(2 + 12 * random()) / 20);
  const taps = Array.from({ length: reflections }, () => {
    const ms = 3 + reverberationMs * 0.7 * random() ** 2;
    const decay = 10 ** ((-3 * ms) / reverberationMs);
    return { at: Math.round(ms * perMs), gain: decay * (random() < 0.5 ? -1 : 1) };
  });
  const power = taps.reduce((sum, tap) => sum + tap.gain ** 2, 0);
  const out = new Float64Array(samples.length + Math.round(reverberationMs * 0.7 * perMs) + 8);
  out.set(samples);
  for (const tap of taps) {
    const share = (tap.gain * gain) / Math.sqrt(power);
    for (let index = 0; index < samples.length; index += 1) {
      out[index + tap.at] = (out[index + tap.at] as number) + (samples[index] as number) * share;
    }
  }
  return out;
}

export function cadence(
  hz: readonly number[],
  [onMs, offMs, times]: readonly [number, number, number],
  dbfs = -18,
): Float64Array {
  const once = joinedSounds([sines(hz, onMs, dbfs), quiet(offMs)]);
  return joinedSounds(Array.from({ length: times }, () => once));
}

/**
 * What the exchange sends when it rejects a call or the far end has hung up (E.180 and ANSI
 * T1.401).
 */
export const busyCadences: readonly (readonly [
  readonly number[],
  readonly [number, number, number],
])[] = [
  [
    [480, 620],
    [500, 500, 6],
  ],
  [
    [480, 620],
    [250, 250, 10],
  ],
  [[425], [480, 480, 6]],
  [[425], [240, 240, 10]],
  [[425], [350, 350, 8]],
  [[400], [375, 375, 7]],
  [[450], [350, 350, 7]],
];

export const ringbacks: readonly (readonly [
  readonly number[],
  readonly [number, number, number],
])[] = [
  [
    [440, 480],
    [2_000, 4_000, 2],
  ],
  [[425], [1_000, 4_000, 2]],
  [
    [400, 450],
    [400, 200, 2],
  ],
];

export function keys(text: string, random: Random): Float64Array {
  const rows = [697, 770, 852, 941];
  const columns = [1_209, 1_336, 1_477];
  return joinedSounds(
    Array.from(text).flatMap((key) => {
      const at = '123456789*0#'.indexOf(key);
      const pair = [rows[Math.floor(at / 3)] ?? 0, columns[at % 3] ?? 0];
      return [sines(pair, 90 + 80 * random(), -16), quiet(80 + 150 * random())];
    }),
  );
}

export type Colour = 'white' | 'pink' | 'brown' | 'hum';
export const colours: readonly Colour[] = ['white', 'pink', 'brown', 'hum'];

export function noiseOf(colour: Colour, ms: number, dbfs: number, seed: number): Float64Array {
  const random = seededRandom(seed);
  const smoothness = { white: 0, pink: 0.85, brown: 0.98, hum: 0.5 }[colour];
  let value = 0;
  const raw = Float64Array.from({ length: Math.round(ms * perMs) }, (_, index) => {
    value = smoothness * value + random() * 2 - 1;
    const hum = colour === 'hum' ? 6 * Math.sin((2 * Math.PI * 100 * index) / sampleRateHz) : 0;
    return value + hum;
  });
  const power = raw.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, raw.length);
  const gain = (32_768 * 10 ** (dbfs / 20)) / Math.sqrt(Math.max(1e-9, power));
  return raw.map((sample) => sample * gain);
}
