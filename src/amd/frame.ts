// Detection works in frames, i.e. 20 ms of one channel at 8 kHz. The number of frames is the only
// clock in this folder.

export const frameMs = 20;
export const frameSamples = 160;
export const sampleRateHz = 8_000;

/** The level that we use for digital silence, whose logarithm is undefined. */
export const silenceDbfs = -96;

/** Converts a power (full scale is 1) to dBFS. */
export function decibels(power: number): number {
  return power <= 0 ? silenceDbfs : Math.max(silenceDbfs, 10 * Math.log10(power));
}
