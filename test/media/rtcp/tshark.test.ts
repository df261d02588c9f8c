// Wireshark's dissector reads each kind of report that we send, and finds nothing to criticise.

import { beforeAll, expect, test } from 'vitest';
import { ntpTimeOf, writeReport } from '../../../src/media/rtcp/rtcp-packets.ts';
import { type Dissected, dissect } from '../../support/pcap.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const fields = [
  'frame.protocols',
  'rtcp.pt',
  'rtcp.length_check',
  'rtcp.senderssrc',
  'rtcp.sender.packetcount',
  'rtcp.ssrc.identifier',
  'rtcp.ssrc.cum_nr',
  'rtcp.sdes.text',
  '_ws.expert',
  '_ws.malformed',
] as const;

/** Every tenth packet of the far end is lost. */
function callWithAllKinds(): SessionBench {
  const bench = new SessionBench();
  bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
  // Nothing is sent or heard yet: an empty receiver's report.
  bench.tick(130);
  bench.session.applyRemote(remote, 'answer');
  // Sent, but not heard: a sender's report without a block.
  bench.tick(260);
  for (let index = 0; index < 260; index += 1) {
    if (index % 10 === 5) bench.sequence += 1;
    bench.hear(1);
  }
  const theirs = writeReport({
    ...{ ssrc: bench.ssrc, cname: 'them', isLast: false },
    sent: { at: ntpTimeOf(bench.nowMs), rtpTimestamp: 1, packets: 260, bytes: 41_600 },
  });
  bench.session.receiveRtcp(theirs, '192.0.2.1', 4_001);
  bench.tick(260);
  // On hold: after two reports without audio of ours, a receiver's report with a block.
  bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
  bench.tick(760);
  bench.session.end();
  return bench;
}

const bench = callWithAllKinds();
let read: readonly Dissected<(typeof fields)[number]>[] = [];

beforeAll(async () => {
  read = await dissect(
    bench.reports.map(({ packet }) => packet),
    'rtcp',
    fields,
  );
});

test('every kind of report is among them', () => {
  const kinds = read.map((one) => `${one['rtcp.pt']} ${one['rtcp.ssrc.cum_nr'] === '' ? '' : '1'}`);
  expect(new Set(kinds)).toEqual(
    new Set(['201,202 ', '200,202 ', '200,202 1', '201,202 1', '201,202,203 1']),
  );
});

test('tshark reads each to its end, without a warning', () => {
  expect(read).toHaveLength(bench.reports.length);
  for (const one of read) {
    expect(one['frame.protocols']).toBe('ip:udp:rtcp');
    expect(one['_ws.expert']).toBe('');
    expect(one['_ws.malformed']).toBe('');
    expect(one['rtcp.length_check']).toMatch(/^(1|True)(,(1|True))*$/);
    expect(one['rtcp.senderssrc']).toBe('0x0000cafe');
    expect(one['rtcp.sdes.text']).toBe('us');
  }
});

test('tshark reads the numbers that we counted', () => {
  const block = read.findLast((one) => one['rtcp.pt'] === '200,202');
  expect(block?.['rtcp.sender.packetcount']).toBe(String(bench.sent.length));
  expect(block?.['rtcp.ssrc.identifier']).toBe('0x00000007,0x0000cafe');
  expect(block?.['rtcp.ssrc.cum_nr']).toBe('26');
});

test('tshark would warn of a report that is cut short', async () => {
  const whole = bench.reports.at(-1)?.packet ?? new Uint8Array();
  const [cut] = await dissect([whole.subarray(0, whole.length - 12)], 'rtcp', fields);

  expect(`${cut?.['_ws.expert']}${cut?.['_ws.malformed']}`).not.toBe('');
});
