// Converts WAV files to mono µ-law of 8 kHz, and describes files that are not sounds.

import { afterAll, describe, expect, test } from 'vitest';
import { decodeTable, encode } from '../../src/media/g711.ts';
import { type Conversion, convert, isQuick } from '../../src/sounds/conversion.ts';
import { createConverter } from '../../src/sounds/converter.ts';
import { makeWav, seeded, sine, type WavParts } from '../support/wav.ts';

function linear(conversion: Conversion): Int16Array {
  if (!conversion.ok) throw new Error(conversion.problem);
  return Int16Array.from(conversion.mulaw, (byte) => decodeTable.PCMU[byte] ?? 0);
}

function heard(parts: WavParts): Int16Array {
  return linear(convert(makeWav(parts)));
}

/** Excludes both ends of the sound, where the filter has no samples. */
function amplitudeAt(samples: Int16Array, hz: number): number {
  const middle = samples.subarray(400, samples.length - 400);
  let [real, imaginary] = [0, 0];
  for (const [index, sample] of middle.entries()) {
    real += sample * Math.cos((2 * Math.PI * hz * index) / 8_000);
    imaginary += sample * Math.sin((2 * Math.PI * hz * index) / 8_000);
  }
  return (2 * Math.hypot(real, imaginary)) / middle.length;
}

function levelOf(samples: Int16Array): number {
  const middle = samples.subarray(400, samples.length - 400);
  return Math.sqrt(middle.reduce((sum, sample) => sum + sample ** 2, 0) / middle.length);
}

/** The level that `sine` makes. */
const amplitude = 12_000;
/** The telephone's test tone. At exactly 1 kHz, µ-law would repeat the same eight samples. */
const toneHz = 1_004;

describe('a sound', () => {
  test.each([8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])(
    'of %i Hz keeps the level and the pitch of a tone of 1 kHz',
    (rate) => {
      const samples = heard({ samples: [sine(toneHz, rate, 1_000)], rate });

      expect(samples.length).toBeGreaterThanOrEqual(7_999);
      expect(samples.length).toBeLessThanOrEqual(8_000);
      // A tolerance of 0.1 dB. The noise that µ-law adds is 36 dB below.
      expect(Math.abs(20 * Math.log10(amplitudeAt(samples, toneHz) / amplitude))).toBeLessThan(0.1);
      const rest = levelOf(samples) ** 2 - amplitudeAt(samples, toneHz) ** 2 / 2;
      expect(rest / levelOf(samples) ** 2).toBeLessThan(0.001);
    },
  );

  test.each([16_000, 44_100, 48_000])('of %i Hz loses a tone of 5 kHz', (rate) => {
    const samples = heard({ samples: [sine(5_000, rate, 1_000)], rate });

    // -50 dB, including the alias at 3 kHz.
    expect(levelOf(samples)).toBeLessThan(amplitude / 300);
  });

  test('of two channels becomes the sum of both at half their level', () => {
    const samples = heard({ samples: [sine(1_000, 8_000, 500), sine(400, 8_000, 500)] });

    expect(amplitudeAt(samples, 1_000) / amplitude).toBeCloseTo(0.5, 2);
    expect(amplitudeAt(samples, 400) / amplitude).toBeCloseTo(0.5, 2);
  });

  test('of µ-law at 8 kHz is kept unchanged', () => {
    const data = Buffer.from(encode('PCMU', sine(1_000, 8_000, 100)));

    expect(convert(makeWav({ data, code: 7, bits: 8 }))).toEqual({
      ok: true,
      mulaw: new Uint8Array(data),
    });
  });

  test.each<[string, WavParts]>([
    ['PCM of 8 bits', { bits: 8 }],
    ['PCM of 24 bits', { bits: 24 }],
    ['PCM of 32 bits', { bits: 32 }],
    ['an extensible format', { extensible: true }],
  ])('is read from %s', (_name, parts) => {
    const samples = heard({ samples: [sine(1_000, 8_000, 500)], ...parts });

    expect(amplitudeAt(samples, 1_000) / amplitude).toBeCloseTo(1, 1);
  });
});

describe('the problem of a file that is not a sound', () => {
  const silence = (seconds: number) => Buffer.alloc(seconds * 8_000, 0xff);

  test.each<[string, Buffer, string]>([
    ['an MP3', Buffer.from('ID3\x04 and so on'), 'not a WAV file (no RIFF header)'],
    ['more than 10 MiB', Buffer.alloc(10 * 1_024 * 1_024 + 1), 'larger than 10 MiB'],
    [
      'more than ten minutes',
      makeWav({ data: silence(601), code: 7, bits: 8 }),
      'longer than 10 minutes',
    ],
    [
      'three channels',
      makeWav({ samples: [sine(1, 8_000, 10), sine(1, 8_000, 10), sine(1, 8_000, 10)] }),
      '3 channels; 1 or 2 are supported',
    ],
    [
      '96 kHz',
      makeWav({ samples: [sine(1_000, 96_000, 10)], rate: 96_000 }),
      'a sample rate of 96000 Hz; 8000 to 48000 are supported',
    ],
    ['no audio', makeWav({ data: Buffer.alloc(0) }), 'no audio data in the file'],
    [
      'one sample of 48 kHz',
      makeWav({ data: Buffer.alloc(2), rate: 48_000 }),
      'no audio data in the file',
    ],
  ])('%s', (_name, file, problem) => {
    expect(convert(file)).toEqual({ ok: false, problem });
  });

  test('accepts a sound of ten minutes', () => {
    expect(convert(makeWav({ data: silence(600), code: 7, bits: 8 }))).toMatchObject({ ok: true });
  });

  test('converts or rejects any broken file', () => {
    const random = seeded(11);
    const good = makeWav({
      samples: [sine(500, 8_000, 20), sine(700, 8_000, 20)],
      extensible: true,
    });
    for (let round = 0; round < 2_000; round += 1) {
      const bad = Buffer.from(good.subarray(0, Math.floor(random() * (good.length + 1))));
      for (let flip = 0; flip < 4 && bad.length > 0; flip += 1) {
        bad[Math.floor(random() ** 2 * bad.length)] = Math.floor(random() * 256);
      }

      // Long files belong to the thread. The many filters of an odd rate also take long.
      if (isQuick(bad)) expect(() => convert(bad)).not.toThrow();
    }
  });
});

describe('conversion', () => {
  const converter = createConverter();
  afterAll(() => converter.close());
  const long = makeWav({ samples: [sine(1_000, 44_100, 5_000)], rate: 44_100 });

  test('runs in a thread for a long file, with the same result', async () => {
    expect(isQuick(long)).toBe(false);
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    }, 1);

    const converted = await Promise.all([converter.convert(long), converter.convert(long)]);
    clearInterval(counting);

    expect(converted).toEqual([convert(long), convert(long)]);
    expect(turns).toBeGreaterThan(1);
  });

  test('rejects files beyond the queue’s limit, and stays usable', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 12 }, () => converter.convert(long)),
    );

    const refused = results.filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(1);
    expect(await converter.convert(long)).toMatchObject({ ok: true });
  });
});
