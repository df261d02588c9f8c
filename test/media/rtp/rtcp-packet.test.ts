// Recognises compound RTCP packets and their sender by the checks of RFC 3550, appendix A.2.

import { describe, expect, test } from 'vitest';
import { readRtcpSender } from '../../../src/media/rtp/rtp-packet.ts';
import { seededRandom } from '../support/random.ts';
import { bye, description, receiverReport, senderReport } from '../support/rtcp.ts';

const ssrc = 0xfedcba98;

describe('a compound packet', () => {
  test.each([
    ['a receiver report', receiverReport(ssrc)],
    ['a receiver report with two blocks', receiverReport(ssrc, 2)],
    ['a sender report', senderReport(ssrc)],
    ['a sender report with a block', senderReport(ssrc, 1)],
    [
      'a report, a description and a BYE',
      [...senderReport(ssrc), ...description(ssrc), ...bye(ssrc)],
    ],
    [
      'two reports, because one has no room for all sources',
      [...senderReport(ssrc, 1), ...receiverReport(7, 1)],
    ],
  ])('is %s', (_, bytes) => {
    expect(readRtcpSender(Uint8Array.from(bytes))).toBe(ssrc);
  });

  test('may start anywhere in a buffer', () => {
    const bytes = receiverReport(ssrc);
    const buffer = Uint8Array.from([9, 9, 9, ...bytes]);

    expect(readRtcpSender(buffer.subarray(3))).toBe(ssrc);
  });
});

describe('not a compound packet', () => {
  const report = receiverReport(ssrc);
  const changed = (at: number, value: number) => {
    const bytes = [...report];
    bytes[at] = value;
    return bytes;
  };
  test.each([
    ['nothing', []],
    ['a header alone', [0x80, 201, 0, 0]],
    ['half a report', report.slice(0, 7)],
    ['version 1', changed(0, 0x40)],
    ['padding in the first packet', changed(0, 0xa0)],
    ['a description first', [...description(ssrc), ...report]],
    ['a BYE alone', bye(ssrc)],
    ['a length beyond the end', changed(3, 2)],
    ['a length before the end', [...report, 0, 0, 0, 0]],
    ['another version behind the report', [...report, 0x41, 202, 0, 0]],
    ['missing blocks', changed(0, 0x81)],
    ['a sender report without the sender’s clock', changed(1, 200)],
    ['a second packet that is longer than the rest', [...report, 0x81, 203, 0, 9, 0, 0, 0, 7]],
    ['RTP of payload type 0', [0x80, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 7]],
  ])('is %s', (_, bytes) => {
    expect(readRtcpSender(Uint8Array.from(bytes))).toBeUndefined();
  });

  test('random bytes never throw', () => {
    const random = seededRandom(3_550);
    for (let round = 0; round < 20_000; round += 1) {
      const bytes = Uint8Array.from({ length: Math.floor(random() * 80) }, () =>
        Math.floor(random() * 256),
      );
      bytes.set([0x80 | (round & 3), 200 + (round % 2)].slice(0, bytes.length));
      readRtcpSender(bytes);
    }
  });
});
