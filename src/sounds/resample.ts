// From a recording's sample rate to a telephone's: a windowed sinc for each of the phases that the two rates have.
// Downwards only, so the filter stops what would fold: aliases of sibilants are heard as tones.

/** Zero crossings of the sinc on each side: a stop band beyond 60 dB with this window. */
const halfWidth = 24;
/** Of the lower Nyquist frequency: the rest is the filter's slope. */
const passBand = 0.94;

export function resample(samples: Int16Array, fromHz: number, toHz: number): Int16Array {
  if (fromHz === toHz) return samples;
  const divisor = greatestCommonDivisor(fromHz, toHz);
  const phases = toHz / divisor;
  const step = fromHz / divisor;
  const filters = makeFilters(phases, fromHz / toHz);
  const reach = ((filters[0]?.length ?? 1) - 1) / 2;
  const output = new Int16Array(Math.floor((samples.length * phases) / step));
  for (let index = 0; index < output.length; index += 1) {
    const position = index * step;
    const filter = filters[position % phases] ?? [];
    const first = Math.floor(position / phases) - reach;
    let sum = 0;
    for (let tap = 0; tap < filter.length; tap += 1) {
      sum += (filter[tap] ?? 0) * (samples[first + tap] ?? 0);
    }
    output[index] = Math.max(-32_768, Math.min(32_767, Math.round(sum)));
  }
  return output;
}

/** Steps of an inner loop: for each sample of the output, and before the first. */
export function filterCost(
  fromHz: number,
  toHz: number,
): { readonly perSample: number; readonly once: number } {
  if (fromHz === toHz) return { perSample: 0, once: 0 };
  const taps = 2 * Math.ceil((halfWidth * fromHz) / toHz) + 1;
  const phases = toHz / greatestCommonDivisor(fromHz, toHz);
  // Three trigonometric functions for each tap of each filter.
  return { perSample: taps, once: 30 * phases * taps };
}

/** One filter for each place that an output sample can have between two input samples. */
function makeFilters(phases: number, ratio: number): readonly Float32Array[] {
  const reach = Math.ceil(halfWidth * ratio);
  const cutoff = passBand / ratio;
  return Array.from({ length: phases }, (_, phase) => {
    const taps = Float32Array.from({ length: 2 * reach + 1 }, (__, tap) => {
      const distance = tap - reach - phase / phases;
      return cutoff * sinc(cutoff * distance) * window(distance / (reach + 1));
    });
    const gain = taps.reduce((sum, tap) => sum + tap, 0);
    return taps.map((tap) => tap / gain);
  });
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Blackman's, from -1 to 1. */
function window(x: number): number {
  return 0.42 + 0.5 * Math.cos(Math.PI * x) + 0.08 * Math.cos(2 * Math.PI * x);
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
