// Tests the reader with WAV files of many programs, and with broken files.

import { describe, expect, test } from 'vitest';
import { readWav } from '../../src/cli/amd/amd-wav.ts';
import { encode } from '../../src/media/g711.ts';
import { makeWav, seeded, sine, type WavParts } from '../support/wav.ts';

const tone = sine(1_000, 8_000, 500);

function read(parts: WavParts, channel = 1) {
  const result = readWav(makeWav(parts), channel);
  if (result.kind === 'unreadable') throw new Error(result.problem);
  return result.recording;
}

function problem(file: Buffer, channel = 1): string {
  const result = readWav(file, channel);
  return result.kind === 'unreadable' ? result.problem : 'none';
}

/** Share of the power that is the sine wave, 0 to 1. */
function purity(samples: Int16Array, hz: number): number {
  let [real, imaginary, power] = [0, 0, 0];
  // Measured away from the ends, where the filter lacks samples.
  const middle = samples.subarray(400, samples.length - 400);
  for (const [index, sample] of middle.entries()) {
    real += sample * Math.cos((2 * Math.PI * hz * index) / 8_000);
    imaginary += sample * Math.sin((2 * Math.PI * hz * index) / 8_000);
    power += sample * sample;
  }
  return (2 * (real ** 2 + imaginary ** 2)) / (power * middle.length);
}

describe('the reader', () => {
  test('reads PCM of 16 bits sample by sample', () => {
    expect(read({ samples: [tone] }).samples).toEqual(tone);
  });

  test.each([8, 24, 32])('reads PCM of %i bits', (bits) => {
    const { samples } = read({ samples: [tone], bits });

    expect(samples).toHaveLength(tone.length);
    expect(purity(samples, 1_000)).toBeGreaterThan(0.99);
  });

  test.each([
    ['µ-law', 7, 'PCMU'],
    ['A-law', 6, 'PCMA'],
  ] as const)('%s, by its old code and as an extensible format', (codec, code, law) => {
    const data = Buffer.from(encode(law, tone));
    const old = read({ data, code, bits: 8 });
    const extensible = read({ data, code, bits: 8, extensible: true });

    expect(old.codec).toBe(codec);
    expect(extensible).toEqual(old);
    expect(purity(old.samples, 1_000)).toBeGreaterThan(0.99);
  });

  test('reads float, clips it, and reads NaN as silence', () => {
    const data = Buffer.alloc(16);
    for (const [index, value] of [0.5, -0.25, 7, Number.NaN].entries()) {
      data.writeFloatLE(value, index * 4);
    }

    expect([...read({ data, code: 3, bits: 32 }).samples]).toEqual([16_384, -8_192, 32_767, 0]);
  });

  test('reads the chosen channel', () => {
    const other = sine(440, 8_000, 500);
    const samples = [tone, other];

    expect(read({ samples }, 1).samples).toEqual(tone);
    expect(read({ samples }, 2).samples).toEqual(other);
    expect(problem(makeWav({ samples }), 3)).toBe('no channel 3; it has 2');
  });

  test.each([11_025, 16_000, 22_050, 32_000, 44_100, 47_999, 48_000, 96_000])(
    'keeps tones below 4 kHz at %i Hz, and does not alias those above',
    (rate) => {
      const low = read({ samples: [sine(1_000, rate, 500)], rate }).samples;
      const high = read({ samples: [sine(5_000, rate, 500)], rate }).samples;
      const loudest = Math.max(...high.subarray(400, 3_600).map(Math.abs));

      expect(low.length).toBeGreaterThanOrEqual(3_999);
      expect(low.length).toBeLessThanOrEqual(4_000);
      expect(purity(low, 1_000)).toBeGreaterThan(0.999);
      expect(loudest).toBeLessThan(20);
    },
  );

  test('skips other chunks, also of odd length, and reads lengths that a pipe left open', () => {
    const extra = { id: 'LIST', content: Buffer.from('odd') };

    expect(read({ samples: [tone], chunks: [extra] }).samples).toEqual(tone);
    expect(read({ samples: [tone], dataLength: 0xffff_ffff }).samples).toEqual(tone);
  });
});

describe('the error', () => {
  test.each<[string, Buffer, string]>([
    ['an empty file', Buffer.alloc(0), 'not a WAV file (no RIFF header)'],
    ['an MP3', Buffer.from('ID3\x04 and so on and on'), 'not a WAV file (no RIFF header)'],
    ['an AVI', Buffer.from('RIFF\0\0\0\0AVI LIST'), 'a RIFF file, but not WAVE'],
    ['a header alone', Buffer.from('RIFF\0\0\0\0WAVE'), 'no audio data in the file'],
    [
      'GSM',
      makeWav({ samples: [tone], code: 49 }),
      'unknown format 49; PCM, float, µ-law and A-law are supported',
    ],
    [
      'a low rate',
      makeWav({ samples: [tone], rate: 6_000 }),
      'a sample rate of 6000 Hz; 8000 to 192000 are supported',
    ],
    [
      'a rate of 0',
      makeWav({ samples: [tone], rate: 0 }),
      'a sample rate of 0 Hz; 8000 to 192000 are supported',
    ],
    ['no channels', makeWav({ samples: [tone], channels: 0 }), '0 channels'],
    [
      '12 bits',
      makeWav({ data: Buffer.alloc(99), bits: 12 }),
      '12-bit PCM; 8, 16, 24, 32 are supported',
    ],
    ['no samples', makeWav({ samples: [new Int16Array(0)] }), 'no audio data in the file'],
    ['half a sample', makeWav({ data: Buffer.alloc(1) }), 'no audio data in the file'],
  ])('%s', (_name, file, expected) => {
    expect(problem(file)).toBe(expected);
  });

  test('is not thrown, whatever is broken in a file', () => {
    const random = seeded(7);
    const good = makeWav({ samples: [tone.subarray(0, 200)], extensible: true });
    for (let round = 0; round < 3_000; round += 1) {
      const bad = Buffer.from(good.subarray(0, Math.floor(random() * (good.length + 1))));
      for (let flip = 0; flip < 4 && bad.length > 0; flip += 1) {
        // Mostly the header is changed, because it has the lengths, rates and formats.
        bad[Math.floor(random() ** 2 * bad.length)] = Math.floor(random() * 256);
      }

      expect(() => readWav(bad, 1 + (round % 3))).not.toThrow();
    }
  });
});
