// The last 128 ms of the line's audio, which all analysers share, along with some values that we
// can compute in one pass over each new frame.

import { decibels, frameSamples, silenceDbfs } from './frame.ts';

/**
 * Analysers never need more than the last 800 samples. The size is a power of two so that we can
 * wrap the index with a mask.
 */
const keptSamples = 1_024;
export const ringMask = keptSamples - 1;
export const fullScalePower = 32_768 ** 2;

export type RecentAudio = {
  /** Ring buffer. */
  readonly samples: Int16Array;
  /**
   * Index of the next sample. The latest samples are just before this index, modulo the buffer's
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
  const samples = new Int16Array(keptSamples);
  return { samples, end: 0, power: 0, dbfs: silenceDbfs, neighbours: 0 };
}

/** Adds a frame of 160 samples. */
export function addFrame(recent: RecentAudio, frame: Int16Array): void {
  const { samples, end } = recent;
  let energy = 0;
  let product = 0;
  let last = 0;
  // We process two samples per iteration, because the additions then depend less on each other,
  // which is faster.
  for (let index = 0; index < frameSamples; index += 2) {
    const sample = frame[index] as number;
    const next = frame[index + 1] as number;
    samples[(end + index) & ringMask] = sample;
    samples[(end + index + 1) & ringMask] = next;
    energy += sample * sample + next * next;
    product += sample * (last + next);
    last = next;
  }
  recent.end = (end + frameSamples) & ringMask;
  recent.power = energy / frameSamples / fullScalePower;
  recent.dbfs = decibels(recent.power);
  recent.neighbours = energy === 0 ? 0 : product / energy;
}

/** Adds silence in place of a frame that never arrived. */
export function addLostFrame(recent: RecentAudio): void {
  const { samples, end } = recent;
  for (let index = 0; index < frameSamples; index += 1) samples[(end + index) & ringMask] = 0;
  recent.end = (end + frameSamples) & ringMask;
  recent.power = 0;
  recent.dbfs = silenceDbfs;
  recent.neighbours = 0;
}
