// The moments at which the rules say "person" about a voice that said more than a hello, with what
// can be measured by then. A model could improve these decisions. All numbers can be explained:
// what was said when, pitch, level, noise.

import { frameMs, frameSamples } from '../../../src/amd/frame.ts';
import { FrameAnalyzer } from '../../../src/amd/frame-analyzer.ts';
import { decide, isHello } from '../../../src/amd/verdict.ts';
import type { Utterance } from '../../../src/amd/voice/utterance.ts';
import { type Label, readManifest, readSamples } from '../score/manifest.ts';

export const featureNames = [
  'span, s',
  'speech, s',
  'speech of the span',
  'syllables',
  'syllables a second',
  'bursts',
  'longest pause, s',
  'onset, s',
  'pitch: spread, octaves',
  'pitch: slope, octaves a second',
  'pitch: end against the whole',
  'level: spread, dB',
  'level: fall, dB',
  'noise, dBFS',
  'speech above noise, dB',
] as const;

export type Moment = {
  readonly label: Label;
  /**
   * The machine beeps, and its beep corrects a verdict of "human". So this verdict loses nothing.
   */
  readonly beeps: boolean;
  readonly features: readonly number[];
};

type Frame = { readonly isSpeech: boolean; readonly hz: number; readonly dbfs: number };

export async function momentsOf(manifestPath: string): Promise<Moment[]> {
  const moments: Moment[] = [];
  for (const { file, truth } of await readManifest(manifestPath)) {
    if (truth.label !== 'human' && truth.label !== 'machine') continue;
    const features = featuresAtVerdict(await readSamples(file));
    if (features === undefined) continue;
    moments.push({ label: truth.label, beeps: truth.beep !== undefined, features });
  }
  return moments;
}

/** @returns undefined if there was no such verdict */
function featuresAtVerdict(samples: Int16Array): readonly number[] | undefined {
  const analyzer = new FrameAnalyzer();
  const frame = new Int16Array(frameSamples);
  const frames: Frame[] = [];
  try {
    for (let at = 0; at < samples.length; at += frameSamples) {
      frame.fill(0);
      frame.set(samples.subarray(at, at + frameSamples));
      const { utterance, tonePending, speech } = analyzer.analyze(frame, false);
      frames.push({ isSpeech: speech, hz: speech ? pitchAt(samples, at) : 0, dbfs: dbfsOf(frame) });
      if (utterance === undefined || tonePending) continue;
      const verdict = decide(utterance, {});
      if (verdict === undefined) continue;
      return verdict.who === 'human' && !isHello(utterance)
        ? measure(utterance, frames)
        : undefined;
    }
    return undefined;
  } finally {
    analyzer.release();
  }
}

function measure(utterance: Utterance, frames: readonly Frame[]): readonly number[] {
  const from = Math.floor(utterance.onsetMs / frameMs);
  const to = Math.max(from + 4, Math.floor((utterance.onsetMs + utterance.spanMs) / frameMs));
  const said = frames.slice(from, to);
  const pitch = said.filter(({ hz }) => hz > 0).map(({ hz }) => Math.log2(hz));
  const levels = said.filter(({ isSpeech }) => isSpeech).map(({ dbfs }) => dbfs);
  const quarter = Math.max(3, Math.floor(said.length / 4));
  const all = said.map(({ dbfs }) => dbfs);
  const noise =
    frames.map(({ dbfs }) => dbfs).toSorted((a, b) => a - b)[Math.floor(frames.length / 20)] ?? 0;
  return [
    utterance.spanMs / 1_000,
    utterance.speechMs / 1_000,
    utterance.speechMs / Math.max(1, utterance.spanMs),
    utterance.syllables,
    utterance.syllables / Math.max(0.3, utterance.speechMs / 1_000),
    utterance.bursts,
    utterance.longestGapMs / 1_000,
    utterance.onsetMs / 1_000,
    spread(pitch),
    slope(pitch) * (1_000 / frameMs),
    mean(pitch.slice(-Math.max(4, Math.floor(pitch.length / 4)))) - mean(pitch),
    spread(levels),
    mean(all.slice(0, quarter)) - mean(all.slice(-quarter)),
    noise,
    mean(levels) - noise,
  ];
}

/** Measures a pitch from 73 to 400 Hz by autocorrelation over 30 ms. Returns 0 without a voice. */
function pitchAt(samples: Int16Array, at: number): number {
  let best = 0.6;
  let hz = 0;
  for (let lag = 20; lag < 110; lag += 1) {
    let [product, one, other] = [0, 1, 1];
    for (let index = at; index < at + 240; index += 2) {
      const [now, then] = [samples[index] ?? 0, samples[index - lag] ?? 0];
      product += now * then;
      one += now * now;
      other += then * then;
    }
    const similar = product / Math.sqrt(one * other);
    if (similar > best) [best, hz] = [similar, 8_000 / lag];
  }
  return hz;
}

function dbfsOf(frame: Int16Array): number {
  const power = frame.reduce((sum, sample) => sum + sample * sample, 0) / frame.length;
  return 10 * Math.log10(power / 32_768 ** 2 + 1e-9);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function spread(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}

/** Fits a line by least squares. Returns its slope per step. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const centre = mean(values);
  const square = values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  const cross = values.reduce((sum, value, at) => sum + (at - middle) * (value - centre), 0);
  return square === 0 ? 0 : cross / square;
}
