// The last 128 ms of the line's audio, which all analysers share, along with some values that we
// can compute in one pass over each new frame.

import { decibels, frameSamples, silenceDbfs } from './frame.ts';

/**
 * Analysers never need more than the last 800 samples. The size is a power of two so that we can
 * wrap the index with a mask.
 */
const keptPairs = 512;
export const ringMask = keptPairs - 1;
const framePairs = frameSamples / 2;
export const fullScalePower = 32_768 ** 2;

export type RecentAudio = {
  /**
   * Ring buffer of two samples per element, because reading is what costs: `earlier` and `later`
   * return them.
   */
  readonly pairs: Int32Array;
  /**
   * Index of the next pair. The latest samples are just before this index, modulo the buffer's
   * length.
   */
  end: number;
  /** Power of the latest frame (full scale is 1). */
  power: number;
  dbfs: number;
  /** Correlation between neighbouring samples in the latest frame, from −1 to 1. */
  neighbours: number;
};

export function newRecentAudio(): RecentAudio {
  const pairs = new Int32Array(keptPairs);
  return { pairs, end: 0, power: 0, dbfs: silenceDbfs, neighbours: 0 };
}

/** Returns the earlier sample of a pair. */
export function earlier(pair: number): number {
  return (pair << 16) >> 16;
}

/** Returns the later sample of a pair. */
export function later(pair: number): number {
  return pair >> 16;
}

/** Adds a frame of 160 samples. */
export function addFrame(recent: RecentAudio, frame: Int16Array): void {
  const { pairs, end } = recent;
  let energy = 0;
  let product = 0;
  let last = 0;
  // We process four samples per iteration, and multiply integers, because that's faster. A square
  // is at most 2^30, so the sum of two squares is exact as an unsigned integer.
  for (let index = 0; index < frameSamples; index += 4) {
    const a = frame[index] as number;
    const b = frame[index + 1] as number;
    const c = frame[index + 2] as number;
    const d = frame[index + 3] as number;
    const at = end + (index >> 1);
    pairs[at & ringMask] = (a & 0xffff) | (b << 16);
    pairs[(at + 1) & ringMask] = (c & 0xffff) | (d << 16);
    energy += (Math.imul(a, a) + Math.imul(b, b)) >>> 0;
    energy += (Math.imul(c, c) + Math.imul(d, d)) >>> 0;
    product += Math.imul(a, last) + Math.imul(a, b);
    product += Math.imul(c, b) + Math.imul(c, d);
    last = d;
  }
  recent.end = (end + framePairs) & ringMask;
  recent.power = energy / frameSamples / fullScalePower;
  recent.dbfs = decibels(recent.power);
  recent.neighbours = energy === 0 ? 0 : product / energy;
}

/** Adds silence in place of a frame that never arrived. */
export function addLostFrame(recent: RecentAudio): void {
  const { pairs, end } = recent;
  for (let index = 0; index < framePairs; index += 1) pairs[(end + index) & ringMask] = 0;
  recent.end = (end + framePairs) & ringMask;
  recent.power = 0;
  recent.dbfs = silenceDbfs;
  recent.neighbours = 0;
}
