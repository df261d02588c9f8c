// The unit that detection works in: 20 ms of one channel at 8 kHz. The count of frames is the only clock in this folder.

export const frameMs = 20;
export const frameSamples = 160;
export const sampleRateHz = 8_000;

/** Of digital silence, where the logarithm has no answer. */
export const silenceDbfs = -96;

/** Power of a frame, 1 being full scale. */
export function meanSquare(frame: Int16Array): number {
  let sum = 0;
  for (let index = 0; index < frame.length; index += 1) {
    const sample = frame[index] ?? 0;
    sum += sample * sample;
  }
  return sum / frame.length / (32_768 * 32_768);
}

export function decibels(power: number): number {
  return power <= 0 ? silenceDbfs : Math.max(silenceDbfs, 10 * Math.log10(power));
}
