// RTCP of one leg: what we report, what we make of the far end's reports, and how the call sounded.

import { describe, expect, test } from 'vitest';
import { ReceptionStatistics } from '../../../src/media/rtcp/reception-statistics.ts';
import {
  middleOf,
  ntpTimeOf,
  readReports,
  writeReport,
} from '../../../src/media/rtcp/rtcp-packets.ts';
import { meanOpinionScore, rFactor } from '../../../src/media/rtcp/voice-quality.ts';
import { readRtcpSender } from '../../../src/media/rtp/rtp-packet.ts';
import { randomFrom } from '../../faults/random.ts';
import { settingsFor } from '../support/observed.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const us = 0xcafe;
const them = 7;

/** A bench whose far end sends 20 ms packets; `isLost` drops some of them on the way. */
function talk(packets: number, isLost: (index: number) => boolean = () => false) {
  const bench = new SessionBench();
  bench.session.applyRemote(remote, 'answer');
  for (let index = 0; index < packets; index += 1) {
    if (isLost(index)) {
      bench.sequence = (bench.sequence + 1) & 0xffff;
      bench.timestamp += 160;
      bench.tick(1);
    } else bench.hear(1);
  }
  return bench;
}

/** A bench whose far end loses a packet now and then. `isLate`: it arrives 100 ms later. */
function listenedTo(isLate: boolean) {
  const bench = new SessionBench();
  bench.session.applyRemote(remote, 'answer');
  bench.session.startDetection(settingsFor());
  for (let round = 0; round < 50; round += 1) {
    for (let index = 0; index < 20; index += 1) bench.hear(1);
    const held = { sequence: bench.sequence, timestamp: bench.timestamp };
    bench.sequence += 1;
    bench.timestamp += 160;
    bench.tick(1);
    for (let index = 0; index < 5; index += 1) bench.hear(1);
    const next = { sequence: bench.sequence, timestamp: bench.timestamp };
    Object.assign(bench, held);
    if (isLate) bench.receive(new Uint8Array(160));
    Object.assign(bench, next);
  }
  return bench;
}

const reportOf = (packet: Uint8Array | undefined, about: number) =>
  packet === undefined ? undefined : readReports(packet, about).heard;

/** A report of the far end about our packets, which refers to our last one. */
function theirReport(bench: SessionBench, heard: { packetsLost: number; afterMs?: number }) {
  const ours = bench.reports.at(-1)?.packet ?? new Uint8Array();
  const lastReport = new DataView(ours.buffer, ours.byteOffset).getUint32(10);
  return writeReport({
    ...{ ssrc: them, cname: 'them', isLast: false },
    sent: { at: ntpTimeOf(bench.nowMs), rtpTimestamp: 1, packets: 2, bytes: 3 },
    received: {
      ...{ ssrc: us, fractionLost: 0, highestSequence: 1, jitter: 24, ...heard, lastReport },
      sinceLastReport: Math.round(((heard.afterMs ?? 0) / 1_000) * 65_536),
    },
  });
}

describe('our reports', () => {
  test('begin 2.5 s after the answer, and follow every 5 s', () => {
    const bench = talk(0);
    const times: number[] = [];
    for (let tick = 0; tick < 700; tick += 1) {
      const before = bench.reports.length;
      bench.tick(1);
      if (bench.reports.length > before) times.push(tick * 20);
    }
    expect(times).toEqual([2_480, 7_480, 12_480]);
  });

  test('go to the port above that of the audio, and say what we sent and heard', () => {
    const bench = talk(130, (index) => index % 10 === 9);

    const [report] = bench.reports;
    expect(report?.to).toBe('192.0.2.1:4001');
    expect(readRtcpSender(report?.packet ?? new Uint8Array())).toBe(us);
    const view = new DataView(Uint8Array.from(report?.packet ?? []).buffer);
    expect(view.getUint32(20)).toBe(bench.sent.length - 5);
    expect(view.getUint32(24)).toBe((bench.sent.length - 5) * 160);
    expect(reportOf(report?.packet, them)).toMatchObject({ packetsLost: 12, lastReport: 0 });
    expect(reportOf(report?.packet, them)?.fractionLost).toBe(Math.floor((12 * 256) / 125));
  });

  test('are a sender’s as long as we sent since the report before the last (RFC 3550, 6.4)', () => {
    const bench = talk(10);
    bench.tick(120);
    bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
    bench.tick(900);

    expect(bench.reports.map(({ packet }) => packet[1])).toEqual([200, 200, 200, 201]);
  });

  test('follow the far end’s own reports to where they come from', () => {
    const bench = talk(200);
    bench.session.receiveRtcp(theirReport(bench, { packetsLost: 0 }), '192.0.2.1', 4_001);
    bench.session.receiveRtcp(theirReport(bench, { packetsLost: 0 }), '192.0.2.1', 61_000);
    bench.tick(300);

    expect(bench.reports.at(-1)?.to).toBe('192.0.2.1:61000');
  });

  test('do not stay with a host that was heard before the far end', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'answer');
    for (let packet = 0; packet < 3; packet += 1) bench.hear(1, '203.0.113.66:9000');
    const report = writeReport({ ssrc: them, cname: 'attacker', isLast: false });
    bench.session.receiveRtcp(report, '203.0.113.66', 9_000);
    for (let packet = 0; packet < 50; packet += 1) bench.hear(1);
    bench.tick(300);

    expect(bench.reports.at(-1)?.to).toBe('192.0.2.1:4001');
  });

  test('follow the audio behind a NAT if they share its port', () => {
    const bench = new SessionBench();
    const rtcp = { address: remote.address, port: remote.port, isMultiplexed: true } as const;
    bench.session.applyRemote({ ...remote, rtcp }, 'answer');
    for (let packet = 0; packet < 50; packet += 1) bench.hear(1, '203.0.113.5:61000');
    bench.tick(300);

    expect(bench.reports.at(-1)?.to).toBe('203.0.113.5:61000');
  });

  test('are not sent to a far end without an RTCP port', () => {
    const bench = new SessionBench();
    const rtcp = { address: remote.address, port: 0 };
    bench.session.applyRemote({ ...remote, rtcp }, 'answer');
    bench.tick(300);
    bench.session.end();

    expect(bench.reports).toEqual([]);
  });

  test('end with a BYE', () => {
    const bench = talk(10);
    bench.session.end();

    const last = bench.reports.at(-1)?.packet ?? new Uint8Array();
    expect([...last.slice(-8)]).toEqual([0x81, 203, 0, 1, 0, 0, 0xca, 0xfe]);
    expect(readRtcpSender(last)).toBe(us);
  });

  test('are not sent before the answer, or to a far end that withholds its address', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'early');
    bench.tick(300);
    bench.session.applyRemote({ ...remote, addressWithheld: true, weSend: false }, 'answer');
    bench.tick(300);

    expect(bench.reports).toEqual([]);
  });
});

describe('the quality of a call', () => {
  test('is unknown if no audio arrived', () => {
    expect(talk(0).session.quality()).toBeUndefined();
  });

  test('is the best on a line without loss', () => {
    expect(talk(500).session.quality()).toEqual({
      ...{ lossPercent: 0, jitterMs: 0, concealedMs: 0, rFactor: 90.1, mos: 4.34 },
    });
  });

  test.each([2, 5, 10])('counts a loss of %d percent, whatever is lost', (percent) => {
    const random = randomFrom(percent);
    let lost = 0;
    const isLost = (index: number) => {
      // The first and the last packet frame what can be counted.
      const isOne = index > 0 && index < 4_999 && random.next() < percent / 100;
      if (isOne) lost += 1;
      return isOne;
    };
    const quality = talk(5_000, isLost).session.quality();

    expect(quality?.lossPercent).toBe(Number(((100 * lost) / 5_000).toFixed(2)));
    expect(quality?.mos).toBeLessThan(4.3);
  });

  test('has the round trip and the loss that the far end reports', () => {
    const bench = talk(200);
    bench.nowMs += 150;
    const report = theirReport(bench, {
      packetsLost: 19,
      afterMs: bench.nowMs - 1_780_000_002_500 - 130,
    });
    bench.session.receiveRtcp(report, '192.0.2.1', 4_001);

    const quality = bench.session.quality();
    expect(quality?.roundTripMs).toBeGreaterThanOrEqual(129);
    expect(quality?.roundTripMs).toBeLessThanOrEqual(131);
    expect(quality?.remote).toEqual({ lossPercent: 9.5, jitterMs: 3 });
  });

  test('has a round trip of 0 if the far end’s clock rounds it to less', () => {
    const bench = talk(200);
    const sentAtMs = 1_780_000_002_500;
    const reported = (afterMs: number) => {
      const report = theirReport(bench, { packetsLost: 0, afterMs });
      bench.session.receiveRtcp(report, '192.0.2.1', 4_001);
      return bench.session.quality()?.roundTripMs;
    };
    // Longer than the time that has passed since our report: not a clock that rounds.
    expect(reported(bench.nowMs - sentAtMs + 3_000)).toBeUndefined();
    expect(reported(bench.nowMs - sentAtMs + 8)).toBe(0);
  });

  test('does not take packets for lost that have a payload type we did not offer', () => {
    const bench = talk(100);
    for (let packet = 0; packet < 20; packet += 1) {
      bench.receive(new Uint8Array(33), 96);
      bench.hear(1);
    }
    expect(bench.session.quality()?.lossPercent).toBe(0);
    expect(bench.counts.discarded).toBe(20);
  });

  test('takes those for lost that another sender sent', () => {
    const bench = talk(100);
    bench.receive(new Uint8Array(33), 96, '203.0.113.66:9000');
    bench.hear(1);

    expect(bench.session.quality()?.lossPercent).toBe(Number((100 / 102).toFixed(2)));
  });

  test('counts any number of senders, and each report is about the current one', () => {
    const bench = talk(130);
    bench.session.receiveRtcp(theirReport(bench, { packetsLost: 0 }), '192.0.2.1', 4_001);
    for (let sender = 0; sender < 20; sender += 1) {
      bench.ssrc += 1;
      bench.sequence = 500;
      for (let index = 0; index < 100; index += 1) {
        if (index % 10 === 5) bench.sequence += 1;
        bench.hear(1);
      }
    }
    bench.session.end();

    expect(bench.session.quality()?.lossPercent).toBeGreaterThan(8);
    expect(reportOf(bench.reports.at(-1)?.packet, bench.ssrc)).toMatchObject({ lastReport: 0 });
  });

  test('is as bad if packets come too late to be heard as if they were lost', () => {
    const [late, lost] = [listenedTo(true), listenedTo(false)].map((bench) =>
      bench.session.quality(),
    );

    expect(late?.lossPercent).toBe(0);
    expect(lost?.lossPercent).toBeGreaterThan(3);
    expect(late?.concealedMs).toBe(lost?.concealedMs);
    expect(late?.rFactor).toBeCloseTo(lost?.rFactor ?? 0, 0);
  });

  test('measures irregular arrival', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'answer');
    for (let index = 0; index < 1_000; index += 1) {
      bench.nowMs += index % 2 === 0 ? 5 : -5;
      bench.hear(1);
    }
    expect(bench.session.quality()?.jitterMs).toBeGreaterThan(4);
    expect(bench.session.quality()?.jitterMs).toBeLessThan(6);
  });

  test('does not count a sender’s restart, a wrap or a repeated packet as loss', () => {
    const statistics = new ReceptionStatistics(1);
    for (const sequence of [65_534, 65_535, 0, 1, 1, 2, 30_000, 30_001]) {
      statistics.note(sequence, 0, false, { sinceMs: 0, untilMs: 0 });
    }
    expect(statistics).toMatchObject({ expected: 7, received: 7 });
  });

  test('counts repeated packets once, and reports them as RFC 3550 says', () => {
    const statistics = new ReceptionStatistics(1);
    for (const sequence of [1, 2, 2, 4, 5, 1, 7, 6, 6]) {
      statistics.note(sequence, 0, false, { sinceMs: 0, untilMs: 0 });
    }
    expect(statistics).toMatchObject({ expected: 7, received: 6 });
    expect(statistics.report().packetsLost).toBe(7 - 9);
  });

  test.each([
    ['every packet on its own', 1],
    ['two packets after each sleep of 40 ms', 2],
  ])('does not take our own sleep for jitter: %s', (_name, atOnce) => {
    const statistics = new ReceptionStatistics(1);
    for (let index = 0; index < 1_000; index += 1) {
      // The packets arrive every 20 ms, and are read at the end of each sleep.
      const arrivedMs = index * 20 + 7 + (index % 3);
      const sleepMs = 20 * atOnce;
      const untilMs = Math.ceil(arrivedMs / sleepMs) * sleepMs;
      statistics.note(index, index * 160, true, { sinceMs: untilMs - sleepMs, untilMs });
    }
    expect(statistics.meanJitterMs).toBeLessThan(1);
  });

  test('ignores a single far-off sequence number (RFC 3550, A.1)', () => {
    const statistics = new ReceptionStatistics(1);
    let nowMs = 0;
    for (const sequence of [1, 2, 30_000, 3, 4, 20_000, 25_000, 6]) {
      nowMs += 20;
      const timestamp = sequence * 160;
      statistics.note(sequence, timestamp, true, { sinceMs: nowMs, untilMs: nowMs });
    }
    // The one that is lost is 5, and the report says so.
    expect(statistics).toMatchObject({ expected: 6, received: 5 });
    expect(statistics.report()).toMatchObject({ packetsLost: 1, highestSequence: 6 });
  });
});

describe('the far end’s reports', () => {
  test('refer to ours by the middle of their time', () => {
    expect(middleOf({ seconds: 0x1234_5678, fraction: 0x9abc_def0 })).toBe(0x5678_9abc);
    expect(ntpTimeOf(0)).toEqual({ seconds: 2_208_988_800, fraction: 0 });
    expect(ntpTimeOf(1_500)).toEqual({ seconds: 2_208_988_801, fraction: 0x8000_0000 });
  });

  test('that are malformed are read as far as they go, and never throw', () => {
    const random = randomFrom(3);
    const whole = theirReport(talk(200), { packetsLost: 3 });
    for (let round = 0; round < 20_000; round += 1) {
      const bytes = whole.slice(0, random.between(0, whole.length));
      for (let change = 0; change < 3 && bytes.length > 0; change += 1) {
        bytes[random.between(0, bytes.length - 1)] = random.between(0, 255);
      }
      if (readRtcpSender(bytes) !== undefined) readReports(bytes, us);
    }
  });

  test('may count more packets than were sent', () => {
    const report = theirReport(talk(200), { packetsLost: -3 });
    expect(readReports(report, us).heard?.packetsLost).toBe(-3);
  });
});

test.each([
  [0, 0, 93.2, 4.41],
  [0, 400, 59.1, 3.05],
  [5, 100, 75, 3.83],
  [100, 0, 17.3, 1.18],
])('loss of %d percent and a delay of %d ms: R %d, MOS %d', (loss, delay, r, mos) => {
  expect(rFactor(loss, delay)).toBeCloseTo(r, 0);
  expect(meanOpinionScore(rFactor(loss, delay))).toBeCloseTo(mos, 1);
});
