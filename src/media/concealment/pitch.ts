// Finds the pitch of the latest audio, as G.711, appendix I, describes: the lag at which the last
// 20 ms resemble the audio before them most.

/** Lags from 5 to 15 ms, i.e. voices from 66 to 200 Hz. Higher voices repeat within these, too. */
const minLag = 40;
export const maxLag = 120;
const windowSamples = 160;
/** Below this energy in the window, the audio before it is too quiet to divide by. */
const minEnergy = 250;

/** Returns the lag in samples. `audio` contains the window and the longest lag before `end`. */
export function findPitch(audio: Int16Array, end: number): number {
  // Every other sample suffices to find the region of the best lag.
  const coarse = bestLag(audio, end, minLag, maxLag, 2);
  return bestLag(audio, end, Math.max(minLag, coarse - 1), Math.min(maxLag, coarse + 1), 1);
}

function bestLag(audio: Int16Array, end: number, from: number, to: number, step: number): number {
  const start = end - windowSamples;
  let energy = energyOf(audio, start - from, end - from);
  let best = from;
  let bestScore = -Infinity;
  for (let lag = from; lag <= to; lag += 1) {
    let correlation = 0;
    for (let index = start; index < end; index += step) {
      correlation += (audio[index] as number) * (audio[index - lag] as number);
    }
    const score = correlation / Math.sqrt(Math.max(energy, minEnergy));
    if (score > bestScore) {
      bestScore = score;
      best = lag;
    }
    energy += (audio[start - lag - 1] as number) ** 2 - (audio[end - lag - 1] as number) ** 2;
  }
  return best;
}

function energyOf(audio: Int16Array, from: number, until: number): number {
  let energy = 0;
  for (let index = from; index < until; index += 1) energy += (audio[index] as number) ** 2;
  return energy;
}
