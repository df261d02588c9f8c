// The recorder of a call's loudness: what each byte means, and how it merges steps in a long call.

import { describe, expect, test } from 'vitest';
import { EnvelopeRecorder } from '../../src/media/envelope-recorder.ts';
import { encode, silenceByte } from '../../src/media/g711.ts';

const header = 12;

describe('the recorded loudness', () => {
  test.each(['PCMU', 'PCMA'] as const)(
    'grows with the samples of %s, in both directions',
    (codec) => {
      const levels = [0, 50, 500, 5_000, 30_000].map((amplitude) => {
        const recorder = new EnvelopeRecorder();
        const samples = Int16Array.from({ length: 160 }, (_, index) =>
          Math.round(amplitude * Math.sin((index * Math.PI) / 4)),
        );
        const payload = encode(codec, samples);
        const packet = new Uint8Array([...new Uint8Array(header), ...payload]);
        recorder.hear(packet, header, packet.length, codec);
        recorder.say(packet, header, codec);
        recorder.tick();
        recorder.tick();
        const { heard, said, stepMs } = recorder.read();
        expect(stepMs).toBe(40);
        expect([...said]).toEqual([...heard]);
        return heard[0] ?? -1;
      });

      expect(levels).toEqual([...levels].sort((a, b) => a - b));
      expect(new Set(levels).size).toBe(5);
      expect(levels[0]).toBeLessThan(20);
      expect(levels[4]).toBeGreaterThan(110);
    },
  );

  test('of silence is 0', () => {
    const recorder = new EnvelopeRecorder();
    const packet = new Uint8Array(172).fill(silenceByte.PCMU);
    recorder.hear(packet, header, packet.length, 'PCMU');
    recorder.tick();
    recorder.tick();
    expect([...recorder.read().heard]).toEqual([0]);
  });

  test('becomes coarser in a long call, and keeps every peak', () => {
    const recorder = new EnvelopeRecorder();
    const loud = new Uint8Array(172).fill(0x80);
    const hours = 2 * 3_600 * 50;
    for (let tick = 0; tick < hours; tick += 1) {
      if (tick === hours / 2) recorder.hear(loud, header, loud.length, 'PCMU');
      recorder.tick();
    }
    const { heard, said, stepMs } = recorder.read();

    expect(heard.length + said.length).toBeLessThanOrEqual(32_768);
    expect(Math.round((heard.length * stepMs) / 1_000)).toBe(7_200);
    const peak = heard.indexOf(127);
    expect(Math.abs(peak * stepMs - 3_600_000)).toBeLessThanOrEqual(stepMs);
    expect(heard.filter((level) => level > 0)).toHaveLength(1);
  });
});
