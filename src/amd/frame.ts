// The unit that detection works in: 20 ms of one channel at 8 kHz. The number of frames is the only
// clock in this folder.

export const frameMs = 20;
export const frameSamples = 160;
export const sampleRateHz = 8_000;

/** Level that we assign to digital silence, because its logarithm is undefined. */
export const silenceDbfs = -96;

/** Converts a power (1: full scale) to dBFS. */
export function decibels(power: number): number {
  return power <= 0 ? silenceDbfs : Math.max(silenceDbfs, 10 * Math.log10(power));
}
