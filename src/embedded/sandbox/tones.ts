// Generates silence and sine waves as arrays of samples, and concatenates such arrays.

export const sampleRateHz = 8_000;
const samplesPerMs = sampleRateHz / 1_000;

/** Length of the fade-in and fade-out. Without fading, there would be an audible click. */
const rampMs = 5;

export function silence(ms: number): Int16Array {
  return new Int16Array(ms * samplesPerMs);
}

/** Returns the sum of sine waves of equal level. `levelDbfs` is the peak of each wave. */
export function tone(frequenciesHz: readonly number[], ms: number, levelDbfs: number): Int16Array {
  const amplitude = 32_767 * 10 ** (levelDbfs / 20);
  const count = ms * samplesPerMs;
  const ramp = rampMs * samplesPerMs;
  return Int16Array.from({ length: count }, (_, index) => {
    const gain = Math.min(1, index / ramp, (count - 1 - index) / ramp);
    let sum = 0;
    for (const hz of frequenciesHz) sum += Math.sin((2 * Math.PI * hz * index) / sampleRateHz);
    return Math.round(amplitude * gain * sum);
  });
}

export function joined(parts: readonly Int16Array[]): Int16Array {
  const whole = new Int16Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
