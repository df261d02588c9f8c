import { describe, expect, test } from 'vitest';
import {
  createRtpHeader,
  readRtp,
  sequenceDistance,
  timestampDistance,
  writeRtpHeader,
} from '../../../src/media/rtp/rtp-packet.ts';
import { seededRandom } from '../support/random.ts';

const fixed = [0x80, 0x80 | 8, 0xff, 0xfe, 0xff, 0xff, 0xff, 0x60, 0xde, 0xad, 0xbe, 0xef];

function read(bytes: readonly number[]) {
  const header = createRtpHeader();
  return readRtp(Uint8Array.from(bytes), header) ? header : undefined;
}

describe('RTP packet', () => {
  test('reads the fixed header', () => {
    expect(read([...fixed, 1, 2, 3])).toEqual({
      payloadType: 8,
      marker: true,
      sequence: 65_534,
      timestamp: 4_294_967_136,
      ssrc: 0xdeadbeef,
      payloadStart: 12,
      payloadEnd: 15,
    });
  });

  test('skips contributing sources, an extension and padding', () => {
    const bytes = [...fixed];
    bytes[0] = 0x80 | 0x20 | 0x10 | 2;
    const csrcs = [1, 1, 1, 1, 2, 2, 2, 2];
    const extension = [0xbe, 0xde, 0, 1, 9, 9, 9, 9];
    const header = read([...bytes, ...csrcs, ...extension, 7, 7, 7, 0, 0, 3]);

    expect(header).toMatchObject({ payloadStart: 28, payloadEnd: 31 });
  });

  test.each([
    ['nothing', []],
    ['a header cut short', fixed.slice(0, 11)],
    ['another version', [0x40, ...fixed.slice(1)]],
    ['missing contributing sources', [0x8f, ...fixed.slice(1)]],
    ['an extension header cut short', [0x90, ...fixed.slice(1), 0, 0, 0]],
    ['an extension longer than the packet', [0x90, ...fixed.slice(1), 0, 0, 0xff, 0xff, 1]],
    ['more padding than packet', [0xa0, ...fixed.slice(1), 1, 200]],
    ['padding of zero bytes', [0xa0, ...fixed.slice(1), 1, 0]],
    ['a STUN binding request', [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8]],
  ])('refuses %s', (_, bytes) => {
    expect(read(bytes)).toBeUndefined();
  });

  test('reads what it writes, and wraps numbers', () => {
    const packet = new Uint8Array(13);
    writeRtpHeader(packet, {
      payloadType: 101,
      marker: true,
      sequence: 65_535,
      timestamp: 2 ** 32 - 1,
      ssrc: 2 ** 31,
    });
    const header = createRtpHeader();

    expect(readRtp(packet, header)).toBe(true);
    expect(header).toMatchObject({
      payloadType: 101,
      marker: true,
      sequence: 65_535,
      timestamp: 2 ** 32 - 1,
      ssrc: 2 ** 31,
    });
  });

  test('never throws for random bytes, and keeps the payload inside its packet', () => {
    const random = seededRandom(3_550);
    const header = createRtpHeader();
    for (let round = 0; round < 20_000; round += 1) {
      const packet = Uint8Array.from({ length: Math.floor(random() * 64) }, () =>
        Math.floor(random() * 256),
      );
      if (packet.length > 0 && random() < 0.9) packet[0] = 0x80 | ((packet[0] ?? 0) & 0x3f);
      if (!readRtp(packet, header)) continue;
      expect(header.payloadStart).toBeGreaterThanOrEqual(12);
      expect(header.payloadEnd).toBeGreaterThanOrEqual(header.payloadStart);
      expect(header.payloadEnd).toBeLessThanOrEqual(packet.length);
    }
  });

  test('calculates distances across the wrap', () => {
    expect(sequenceDistance(2, 65_534)).toBe(4);
    expect(sequenceDistance(65_534, 2)).toBe(-4);
    expect(timestampDistance(100, 2 ** 32 - 60)).toBe(160);
    expect(timestampDistance(2 ** 32 - 60, 100)).toBe(-160);
  });
});
