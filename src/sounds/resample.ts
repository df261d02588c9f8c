// Downsamples a recording to telephone rate with a polyphase windowed-sinc filter. The filter
// removes frequencies that would otherwise alias into the lower band, where aliased sibilants sound
// like tones.

/**
 * The sinc's zero crossings on each side. With this window, the filter attenuates the stop band by
 * more than 60 dB.
 */
const halfWidth = 24;
/** Cutoff as a share of the lower Nyquist frequency. The rest is needed for the filter's slope. */
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

/** Returns the cost of resampling in inner loop steps, both per output sample and for the setup. */
export function filterCost(
  fromHz: number,
  toHz: number,
): { readonly perSample: number; readonly once: number } {
  if (fromHz === toHz) return { perSample: 0, once: 0 };
  const taps = 2 * Math.ceil((halfWidth * fromHz) / toHz) + 1;
  const phases = toHz / greatestCommonDivisor(fromHz, toHz);
  // Computing a filter requires three trigonometric functions per tap.
  return { perSample: taps, once: 30 * phases * taps };
}

/** Makes one filter for each position that an output sample can have between two input samples. */
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

/** The Blackman window on [-1, 1]. */
function window(x: number): number {
  return 0.42 + 0.5 * Math.cos(Math.PI * x) + 0.08 * Math.cos(2 * Math.PI * x);
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
