import { expect, test } from 'vitest';
import { PacketSplitter } from '../../../src/media/rtp/packet-splitter.ts';
import { createRtpHeader, readRtp, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';

function packetOf(samples: number, sequence: number, timestamp: number, marker = false) {
  const packet = new Uint8Array(12 + samples);
  writeRtpHeader(packet, { payloadType: 8, marker, sequence, timestamp, ssrc: 7 });
  return packet.map((byte, index) => (index < 12 ? byte : index));
}

/** Sends each packet with its limit, and returns what leaves. */
function sent(...packets: readonly (readonly [Uint8Array, number | undefined])[]): Uint8Array[] {
  const out: Uint8Array[] = [];
  const splitter = new PacketSplitter((packet) => out.push(packet.slice()));
  for (const [packet, maxSamples] of packets) splitter.send(packet, maxSamples);
  return out;
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

  expect(sent([packet, undefined], [packet, 160])).toEqual([packet, packet]);
});

test('splits a packet into equal parts, with the time and number of each', () => {
  const packet = packetOf(160, 0xffff, 0xffff_ffd0, true);

  const parts = read(sent([packet, 120]));

  expect(parts).toMatchObject([
    { payloadType: 8, marker: true, sequence: 0xffff, timestamp: 0xffff_ffd0, ssrc: 7 },
    { payloadType: 8, marker: false, sequence: 0, timestamp: 0x20, ssrc: 7 },
  ]);
  expect(parts.map(({ payload }) => payload.length)).toEqual([80, 80]);
  expect(parts.flatMap(({ payload }) => payload)).toEqual([...packet.subarray(12)]);
});

test('numbers later packets without a gap, also if they are no longer split', () => {
  const packets = sent(
    [packetOf(160, 10, 0), 40],
    [packetOf(4, 11, 160), undefined],
    [packetOf(160, 12, 160), 80],
    [packetOf(160, 13, 320), undefined],
  );

  expect(read(packets).map(({ sequence }) => sequence)).toEqual([10, 11, 12, 13, 14, 15, 16, 17]);
});
