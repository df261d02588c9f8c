import { expect, test } from 'vitest';
import { PacketSplitter } from '../../../src/media/rtp/packet-splitter.ts';
import { createRtpHeader, readRtp, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';

function packetOf(samples: number, sequence: number, timestamp: number, marker = false) {
  const packet = new Uint8Array(12 + samples);
  writeRtpHeader(packet, { payloadType: 8, marker, sequence, timestamp, ssrc: 7 });
  return packet.map((byte, index) => (index < 12 ? byte : index));
}

function read(packets: readonly Uint8Array[]) {
  return packets.map((packet) => {
    const header = createRtpHeader();
    expect(readRtp(packet, header)).toBe(true);
    const { payloadType, marker, sequence, timestamp, ssrc } = header;
    const payload = [...packet.subarray(12)];
    return { payloadType, marker, sequence, timestamp, ssrc, payload };
  });
}

test('passes packets on if the far end sets no limit, or a higher one', () => {
  const packet = packetOf(160, 1, 2);
  const splitter = new PacketSplitter();

  expect(splitter.split(packet, undefined)).toEqual([packet]);
  expect(splitter.split(packet, 160)).toEqual([packet]);
});

test('splits a packet into equal parts, with the time and number of each', () => {
  const packet = packetOf(160, 0xffff, 0xffff_ffd0, true);

  const parts = read(new PacketSplitter().split(packet, 120));

  expect(parts).toMatchObject([
    { payloadType: 8, marker: true, sequence: 0xffff, timestamp: 0xffff_ffd0, ssrc: 7 },
    { payloadType: 8, marker: false, sequence: 0, timestamp: 0x20, ssrc: 7 },
  ]);
  expect(parts.map(({ payload }) => payload.length)).toEqual([80, 80]);
  expect(parts.flatMap(({ payload }) => payload)).toEqual([...packet.subarray(12)]);
});

test('numbers later packets without a gap, also if they are no longer split', () => {
  const splitter = new PacketSplitter();
  const sent = [
    ...splitter.split(packetOf(160, 10, 0), 40),
    ...splitter.split(packetOf(4, 11, 160), undefined),
    ...splitter.split(packetOf(160, 12, 160), 80),
    ...splitter.split(packetOf(160, 13, 320), undefined),
  ];

  expect(read(sent).map(({ sequence }) => sequence)).toEqual([10, 11, 12, 13, 14, 15, 16, 17]);
});
