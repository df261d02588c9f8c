import { describe, expect, test } from 'vitest';
import { decodeTable, encode, encodeAlaw, encodeMulaw, silenceByte } from '../../src/media/g711.ts';

describe('G.711 µ-law', () => {
  // ITU-T G.711 table 2, scaled to 16 bits (× 4): the values at which the eight segments start, and
  // the extremes.
  test.each([
    [0xff, 0],
    [0x7f, 0],
    [0xfe, 8],
    [0x7e, -8],
    [0xef, 132],
    [0xdf, 396],
    [0xcf, 924],
    [0xbf, 1_980],
    [0xaf, 4_092],
    [0x9f, 8_316],
    [0x8f, 16_764],
    [0x80, 32_124],
    [0x00, -32_124],
  ])('code word %i is the sample %i', (byte, sample) => {
    expect(decodeTable.PCMU[byte]).toBe(sample);
  });

  test('every code word survives a round trip; minus zero becomes zero', () => {
    for (let byte = 0; byte < 256; byte += 1) {
      const expected = byte === 0x7f ? 0xff : byte;
      expect(encodeMulaw(decodeTable.PCMU[byte] ?? 0)).toBe(expected);
    }
  });

  test('every sample is encoded within half a step, and clipped at the peak', () => {
    expectWithinHalfStep(encodeMulaw, decodeTable.PCMU, 32_124);
  });
});

describe('G.711 A-law', () => {
  // ITU-T G.711 table 1, scaled to 16 bits (× 8).
  test.each([
    [0xd5, 8],
    [0x55, -8],
    [0xd4, 24],
    [0xc5, 264],
    [0xf5, 528],
    [0xe5, 1_056],
    [0x95, 2_112],
    [0x85, 4_224],
    [0xb5, 8_448],
    [0xa5, 16_896],
    [0xaa, 32_256],
    [0x2a, -32_256],
  ])('code word %i is the sample %i', (byte, sample) => {
    expect(decodeTable.PCMA[byte]).toBe(sample);
  });

  test('every code word survives a round trip', () => {
    for (let byte = 0; byte < 256; byte += 1) {
      expect(encodeAlaw(decodeTable.PCMA[byte] ?? 0)).toBe(byte);
    }
  });

  test('every sample is encoded within half a step, and clipped at the peak', () => {
    expectWithinHalfStep(encodeAlaw, decodeTable.PCMA, 32_256);
  });
});

test('silence on the wire is (almost) zero in both laws', () => {
  expect(decodeTable.PCMU[silenceByte.PCMU]).toBe(0);
  expect(decodeTable.PCMA[silenceByte.PCMA]).toBe(8);
  expect([...encode('PCMU', new Int16Array(3))]).toEqual([0xff, 0xff, 0xff]);
  expect([...encode('PCMA', new Int16Array(3))]).toEqual([0xd5, 0xd5, 0xd5]);
});

/**
 * Asserts that each code word represents the samples around its level, half a step to either side.
 */
function expectWithinHalfStep(
  encodeSample: (sample: number) => number,
  table: Int16Array,
  peak: number,
) {
  const levels = [...new Set(table)].sort((a, b) => a - b);
  const halfSteps = new Map(
    levels.map((level, index) => {
      const below = level - (levels[index - 1] ?? level);
      const above = (levels[index + 1] ?? level) - level;
      return [level, Math.max(below, above) / 2];
    }),
  );
  for (let sample = -peak; sample <= peak; sample += 1) {
    const level = table[encodeSample(sample)] ?? 0;
    if (Math.abs(level - sample) > (halfSteps.get(level) ?? 0)) {
      throw new Error(`${sample} was encoded as ${level}`);
    }
  }
  for (const [beyond, level] of [
    [32_767, peak],
    [-32_768, -peak],
  ] as const) {
    expect(table[encodeSample(beyond)]).toBe(level);
  }
}
