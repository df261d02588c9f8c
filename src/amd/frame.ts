// The unit that detection works in: 20 ms of one channel at 8 kHz. The count of frames is the only clock in this folder.

export const frameMs = 20;
export const frameSamples = 160;
export const sampleRateHz = 8_000;

/** Of digital silence, where the logarithm has no answer. */
export const silenceDbfs = -96;

/** Of a power, 1 being full scale. */
export function decibels(power: number): number {
  return power <= 0 ? silenceDbfs : Math.max(silenceDbfs, 10 * Math.log10(power));
}
