// Comfort noise as RFC 3389 describes it.

import { describe, expect, test } from 'vitest';
import { ComfortNoise } from '../../../src/media/concealment/comfort-noise.ts';
import { pausedSample } from '../../../src/media/rtp/jitter-buffer.ts';

function noiseAfter(...payloads: readonly number[][]): Int16Array {
  const noise = new ComfortNoise();
  for (const payload of payloads) noise.setLevel(Uint8Array.from(payload), 0, payload.length);
  const frame = new Int16Array(160 * 50).fill(pausedSample);
  noise.fill(frame);
  return frame;
}

/** The level below a square wave at the overload of µ-law. */
function dbov(samples: Int16Array): number {
  const energy = samples.reduce((sum, sample) => sum + sample ** 2, 0);
  return 10 * Math.log10(energy / samples.length / 32_124 ** 2);
}

describe('comfort noise', () => {
  test.each([30, 40, 50, 60, 70])('has the level of the packet, -%i dBov', (level) => {
    expect(dbov(noiseAfter([level]))).toBeCloseTo(-level, 0);
  });

  test('ignores the spectrum and the reserved bit', () => {
    expect(noiseAfter([0x80 | 50, 127, 3, 200])).toEqual(noiseAfter([50]));
  });

  test('has the level of the last packet, and keeps it if a packet is empty', () => {
    expect(noiseAfter([60], [45], [])).toEqual(noiseAfter([45]));
  });

  test.each([0, 10, 29])('is no louder than -30 dBov if the packet says -%i', (level) => {
    expect(dbov(noiseAfter([level]))).toBeCloseTo(-30, 0);
  });

  test('is silence at the lowest level, and if no packet has said a level', () => {
    expect(new Set(noiseAfter([127]))).toEqual(new Set([0]));
    expect(new Set(noiseAfter())).toEqual(new Set([0]));
  });

  test('replaces only the samples that the far end did not send', () => {
    const noise = new ComfortNoise();
    noise.setLevel(Uint8Array.of(40), 0, 1);
    const frame = new Int16Array(160).fill(77);
    frame.fill(pausedSample, 40, 80);
    noise.fill(frame);

    expect(frame.slice(0, 40).every((sample) => sample === 77)).toBe(true);
    expect(frame.slice(40, 80).some((sample) => sample !== 77)).toBe(true);
    expect(frame.slice(80).every((sample) => sample === 77)).toBe(true);
  });
});
