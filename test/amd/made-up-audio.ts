// Audio that a seed reproduces: noise, tones, gaps and bursts, and sounds that are shaped a little
// like speech.

import { frameSamples } from '../../src/amd/frame.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';

export type Random = () => number;

/** Mulberry32: numbers from 0 up to 1, the same sequence for the same seed on every machine. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

export function noise(random: Random, ms: number, level: number): Int16Array {
  return Int16Array.from({ length: ms * 8 }, () => Math.round((random() * 2 - 1) * level));
}

/** A buzz with the harmonics and the syllables of a voice: enough for a voice activity detector. */
export function babble(random: Random, ms: number, level = 12_000): Int16Array {
  const pitchHz = 90 + random() * 130;
  const syllableMs = 140 + random() * 160;
  return Int16Array.from({ length: ms * 8 }, (_, index) => {
    const seconds = index / 8_000;
    const envelope = Math.max(0, Math.sin((Math.PI * index) / 8 / syllableMs)) ** 2;
    const drift = 1 + 0.08 * Math.sin(2 * Math.PI * 2.3 * seconds);
    let sum = 0;
    for (let harmonic = 1; harmonic <= 18; harmonic += 1) {
      const hz = pitchHz * harmonic;
      const formant =
        Math.exp(-(((hz - 600) / 500) ** 2)) + 0.5 * Math.exp(-(((hz - 1_700) / 500) ** 2));
      sum += (formant / 3) * Math.sin(2 * Math.PI * hz * drift * seconds);
    }
    return Math.max(-32_768, Math.min(32_767, Math.round(level * envelope * sum)));
  });
}

/** Makes up to `maxMs` of random audio that exercises every part of the detector. */
export function anything(random: Random, maxMs: number): Int16Array {
  const parts: Int16Array[] = [];
  const wholeMs = Math.round(random() * maxMs);
  for (let ms = 0; ms < wholeMs; ) {
    const partMs = 20 + Math.round(random() * random() * 6_000);
    parts.push(part(random, partMs));
    ms += partMs;
  }
  return joined(parts);
}

function part(random: Random, ms: number): Int16Array {
  const kind = Math.floor(random() * 6);
  if (kind === 0) return silence(ms);
  if (kind === 1) return noise(random, ms, 32_000 * random() ** 4);
  if (kind === 2) return tone([300 + random() * 2_000], ms, -3 - random() * 40);
  if (kind === 3) return tone([440, 480 + random() * 400], Math.min(ms, 2_000), -10);
  // A square wave at full scale, and noise in every second frame.
  if (kind === 4) {
    return Int16Array.from({ length: ms * 8 }, (_, index) => {
      const on = Math.floor(index / frameSamples) % 2 === 0;
      return on ? Math.sign(Math.sin(index / 3)) * 32_767 : 0;
    });
  }
  return babble(random, ms);
}
