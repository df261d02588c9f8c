// Converts 8 kHz to 16 kHz, for engines whose models only accept that sample rate. Every second
// output sample is an input sample. The samples in between are computed by a half-band filter (a
// windowed sinc) from the eight samples on either side. The filter attenuates images above 4.3 kHz
// by 50 dB.

const side = 8;

/** Weights of the samples at distances of 0.5, 1.5, … from the new sample. */
const taps = Float64Array.from({ length: side }, (_, index) => {
  const distance = index + 0.5;
  const sinc = Math.sin(Math.PI * distance) / (Math.PI * distance);
  return sinc * (0.5 + 0.5 * Math.cos((Math.PI * distance) / side));
});
const gain = 1 / (2 * taps.reduce((sum, tap) => sum + tap, 0));

/**
 * Creates a converter for one stream. Each call continues where the previous one ended, and the
 * output is delayed by 1 ms. Input samples are 16-bit integers, output samples range from -1 to 1.
 */
export function createUpsampler(): (samples: Int16Array) => Float32Array {
  let history = new Int16Array(2 * side);
  return (samples) => {
    const line = new Int16Array(history.length + samples.length);
    line.set(history);
    line.set(samples, history.length);
    const out = new Float32Array(2 * samples.length);
    for (let index = 0; index < samples.length; index += 1) {
      const at = index + side;
      let between = 0;
      for (let tap = 0; tap < side; tap += 1) {
        const pair = (line[at - tap] as number) + (line[at + tap + 1] as number);
        between += (taps[tap] as number) * pair;
      }
      out[2 * index] = (line[at] as number) / 32_768;
      out[2 * index + 1] = (between * gain) / 32_768;
    }
    history = line.slice(-2 * side);
    return out;
  };
}
