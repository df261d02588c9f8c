// What a listener hears in place of lost audio (G.711, appendix I).

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Concealment } from '../../../src/media/concealment/concealment.ts';
import { decodeTable, encode } from '../../../src/media/g711.ts';
import { missingSample } from '../../../src/media/rtp/jitter-buffer.ts';
import { readManifest, readSamples } from '../../amd-corpus/score/manifest.ts';
import { seededRandom } from '../support/random.ts';

const frameSamples = 160;

/** Returns what is heard of `samples` if `isLost` says which of them don't arrive. */
function hear(samples: Int16Array, isLost: (sample: number) => boolean): Int16Array {
  const concealment = new Concealment();
  const heard = new Int16Array(samples.length - (samples.length % frameSamples));
  for (let at = 0; at < heard.length; at += frameSamples) {
    const frame = samples.slice(at, at + frameSamples);
    for (let index = 0; index < frameSamples; index += 1) {
      if (isLost(at + index)) frame[index] = missingSample;
    }
    if (frame.includes(missingSample)) concealment.fill(frame);
    else concealment.follow(frame);
    heard.set(frame, at);
  }
  return heard;
}

const inFrames = (from: number, until: number) => (sample: number) =>
  sample >= from * frameSamples && sample < until * frameSamples;

function sine(hz: number, amplitude: number, frames: number): Int16Array {
  return Int16Array.from({ length: frames * frameSamples }, (_, index) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * index) / 8_000)),
  );
}

function noise(amplitude: number, frames: number): Int16Array {
  const random = seededRandom(711);
  return Int16Array.from({ length: frames * frameSamples }, () =>
    Math.round(amplitude * (2 * random() - 1)),
  );
}

function power(samples: Int16Array): number {
  return samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length;
}

function snrDb(original: Int16Array, heard: Int16Array): number {
  const difference = original.map((sample, index) => sample - (heard[index] ?? 0));
  return 10 * Math.log10(power(original) / Math.max(1e-9, power(difference)));
}

const largestStep = (samples: Int16Array) =>
  samples.reduce(
    (largest, sample, index) =>
      index === 0 ? 0 : Math.max(largest, Math.abs(sample - (samples[index - 1] ?? 0))),
    0,
  );

describe('concealment', () => {
  test('changes nothing while nothing is lost', () => {
    const line = noise(20_000, 50);

    expect(hear(line, () => false)).toEqual(line);
  });

  test('changes nothing before the loss, nor after it but for 10 ms', () => {
    const line = noise(20_000, 50);
    const heard = hear(line, inFrames(20, 22));

    expect(heard.slice(0, 20 * 160)).toEqual(line.slice(0, 20 * 160));
    expect(heard.slice(22 * 160 + 80)).toEqual(line.slice(22 * 160 + 80));
  });

  test.each([67, 100, 150, 200, 310, 440, 850, 1_000, 1_400])(
    'continues a tone of %i Hz through a lost frame almost as it was',
    (hz) => {
      const line = sine(hz, 10_000, 30);
      const heard = hear(line, inFrames(20, 21));
      const [from, until] = [20 * 160, 22 * 160];

      expect(snrDb(line.slice(from, until), heard.slice(from, until))).toBeGreaterThan(15);
    },
  );

  test.each([1, 2, 3, 5])('makes no click in a tone at either end of %i lost frames', (frames) => {
    const line = sine(330, 10_000, 40);
    const heard = hear(line, inFrames(20, 20 + frames));

    expect(largestStep(heard)).toBeLessThan(1.3 * largestStep(line));
  });

  test('keeps the level of a lost frame', () => {
    for (const line of [sine(233, 8_000, 30), noise(8_000, 30)]) {
      const made = hear(line, inFrames(20, 21)).slice(20 * 160, 21 * 160);
      const changeDb = 10 * Math.log10(power(made) / power(line));
      expect(Math.abs(changeDb)).toBeLessThan(3);
    }
  });

  test('fades from 10 ms on, and is silent after 60 ms', () => {
    const heard = hear(sine(200, 10_000, 40), inFrames(20, 30));
    const levels = Array.from({ length: 10 }, (_, index) =>
      power(heard.slice((20 + index) * 160, (21 + index) * 160)),
    );

    expect(levels.slice(0, 4).map((level, index) => level > (levels[index + 1] ?? 0))).toEqual(
      Array.from({ length: 4 }, (_, index) => index < 3),
    );
    expect(levels.slice(3)).toEqual(Array.from({ length: 7 }, () => 0));
  });

  test('fades in what follows a long gap, within 10 ms', () => {
    const line = sine(200, 10_000, 40);
    const heard = hear(line, inFrames(20, 30));

    expect(Math.abs(heard[30 * 160] ?? 0)).toBeLessThan(200);
    expect(heard.slice(30 * 160 + 80)).toEqual(line.slice(30 * 160 + 80));
  });

  test('begins in the middle of a frame if the loss does', () => {
    const line = sine(200, 10_000, 40);
    const heard = hear(line, (sample) => sample >= 3_280 && sample < 3_520);

    expect(heard.slice(0, 3_280)).toEqual(line.slice(0, 3_280));
    expect(snrDb(line.slice(3_280, 3_520), heard.slice(3_280, 3_520))).toBeGreaterThan(10);
    expect(heard.slice(3_600)).toEqual(line.slice(3_600));
  });

  test('is silent if nothing was heard before', () => {
    expect(hear(noise(9_000, 10), () => true)).toEqual(new Int16Array(1_600));
  });

  test('stays within the range of the audio, whatever is lost', () => {
    const scripts = fc.array(
      fc.record({
        amplitude: fc.integer({ min: 0, max: 32_124 }),
        isSquare: fc.boolean(),
        period: fc.integer({ min: 2, max: 400 }),
        lost: fc.uniqueArray(fc.integer({ min: 0, max: 159 }), { maxLength: 3 }),
        isLost: fc.boolean(),
      }),
      { maxLength: 40 },
    );
    const frameOf = ({ amplitude, isSquare, period, lost, isLost }: Script): Int16Array => {
      const frame = Int16Array.from({ length: 160 }, (_, index) => {
        const wave = Math.sin((2 * Math.PI * index) / period);
        return amplitude * (isSquare ? Math.sign(wave) : wave);
      });
      if (isLost) frame.fill(missingSample, lost[0] ?? 0, lost[1] ?? 160);
      for (const sample of lost) frame[sample] = missingSample;
      return frame;
    };
    fc.assert(
      fc.property(scripts, (script) => {
        const concealment = new Concealment();
        const heard = script.map(frameOf);
        for (const frame of heard) concealment.fill(frame);
        const loudest = heard.flatMap((frame) => Math.max(...frame.map(Math.abs)));
        expect(Math.max(0, ...loudest)).toBeLessThanOrEqual(32_635);
      }),
      { numRuns: 300 },
    );
  });

  test.each([2, 5, 10])(
    'is closer to the recordings of detection than silence if %i %% are lost',
    async (lossPercent) => {
      const manifest = new URL('../../fixtures/amd/manifest.csv', import.meta.url).pathname;
      const random = seededRandom(lossPercent);
      const isLost = () => random() * 100 < lossPercent;
      const snrs: number[] = [];
      for (const { file } of await readManifest(manifest)) {
        snrs.push(...lossSnrs(await readSamples(file), isLost));
      }
      const mean = snrs.reduce((sum, snr) => sum + snr, 0) / snrs.length;

      expect(snrs.length).toBeGreaterThan(100);
      // Silence has 0 dB by definition.
      expect(mean).toBeGreaterThan(0.3);
    },
  );
});

type Script = {
  readonly amplitude: number;
  readonly isSquare: boolean;
  readonly period: number;
  readonly lost: readonly number[];
  readonly isLost: boolean;
};

/** Returns the segmental SNR of each lost frame in which there was sound, in dB. */
function lossSnrs(recorded: Int16Array, isLost: () => boolean): number[] {
  const coded = encode('PCMU', recorded);
  const line = Int16Array.from(coded, (byte) => decodeTable.PCMU[byte] ?? 0);
  const lost = Array.from({ length: Math.floor(line.length / 160) }, isLost);
  const heard = hear(line, (sample) => lost[Math.floor(sample / 160)] === true);
  return lost.flatMap((isFrameLost, index) => {
    const [from, until] = [index * 160, (index + 1) * 160];
    const original = line.slice(from, until);
    if (!isFrameLost || power(original) < 300 ** 2) return [];
    // The usual bounds of a segmental SNR.
    return Math.max(-10, Math.min(35, snrDb(original, heard.slice(from, until))));
  });
}
