import { describe, expect, test } from 'vitest';
import { encodeAlaw, encodeMulaw } from '../../../src/media/g711.ts';
import { forEachTest } from '../../support/opened.ts';
import { settingsFor } from '../support/observed.ts';
import { seededRandom } from '../support/random.ts';
import { receiverReport } from '../support/rtcp.ts';
import { inactivityFrames, remote, SessionBench } from '../support/session-bench.ts';

describe('RTP session', () => {
  const bench = forEachTest(() => new SessionBench());

  describe('comfort silence', () => {
    test('is sent every 20 ms from the answer on, with a marker first and numbers that wrap', () => {
      bench.tick(3);
      bench.session.applyRemote(remote, 'answer');
      bench.tick(3);

      const silence = Array.from({ length: 160 }, () => 0xff);
      const rest = { payloadType: 0, ssrc: 0xcafe, to: '192.0.2.1:4000', payload: silence };
      expect(bench.sent).toEqual([
        { ...rest, marker: true, sequence: 65_535, timestamp: 480 },
        { ...rest, marker: false, sequence: 0, timestamp: 640 },
        { ...rest, marker: false, sequence: 1, timestamp: 800 },
      ]);
    });

    test('is not sent into early media', () => {
      bench.session.applyRemote(remote, 'early');
      bench.tick(3);

      expect(bench.sent).toEqual([]);
    });

    test('has the codec and payload type of the answer', () => {
      bench.session.applyRemote({ ...remote, codec: 'PCMA', payloadType: 8 }, 'answer');
      bench.tick(1);

      expect(bench.sent[0]).toMatchObject({ payloadType: 8 });
      expect(new Set(bench.sent[0]?.payload)).toEqual(new Set([0xd5]));
    });

    test('is not sent in a burst by a late clock, and its timestamps still follow the time', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.tick(true);
      for (let tick = 0; tick < 10; tick += 1) bench.session.tick(false);
      bench.session.tick(true);

      expect(bench.sent.map((packet) => packet.sequence)).toEqual([65_535, 0]);
      expect(bench.sent[1]?.timestamp).toBe((bench.sent[0]?.timestamp ?? 0) + 11 * 160);
      expect(bench.counts).toMatchObject({ sent: 2, unsent: 10 });
    });

    test('goes to the address from which the far end sends', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.tick(1);
      bench.hear(1, '198.51.100.2:7000');
      bench.hear(1, '198.51.100.2:7000');

      expect(bench.sent.map((packet) => packet.to)).toEqual([
        '192.0.2.1:4000',
        '192.0.2.1:4000',
        '198.51.100.2:7000',
      ]);
    });
  });

  describe('detection', () => {
    test('gets a frame for every 20 ms from its start, received or not', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      bench.tick(2);
      for (let level = 1; level <= 4; level += 1) bench.hear(level);
      bench.tick(3);

      expect(bench.frames.join(' ')).toBe('- - - - 1 2 3 4 -');
    });

    test('never gets ringback of early media', () => {
      bench.session.applyRemote(remote, 'early');
      for (let count = 0; count < 10; count += 1) bench.hear(9);
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      for (let level = 1; level <= 4; level += 1) bench.hear(level);

      expect(bench.counts.received).toBe(14);
      expect(bench.frames.join(' ')).toBe('- - 1 2');
    });

    test('hears both laws, and a change between them', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      bench.hear(3);
      bench.receive(new Uint8Array(160).fill(encodeAlaw(-5_000)), 8);
      bench.tick(3);

      expect(bench.frames.join(' ')).toBe('- - 3 -5');
    });

    test.each([
      ['the static type', undefined, 13],
      ['a negotiated type', [98], 98],
    ])('hears low noise, and no loss, while comfort noise of %s lasts', (_, comfortNoise, type) => {
      const powers: number[] = [];
      const noisy = new SessionBench(() => ({
        done: false,
        push: (frame, lost) => {
          powers.push(lost ? -1 : Math.hypot(...frame) / Math.sqrt(160));
          return [];
        },
        stop: () => [],
      }));
      noisy.session.applyRemote({ ...remote, ...(comfortNoise && { comfortNoise }) }, 'answer');
      noisy.session.startDetection(settingsFor());
      for (let count = 0; count < 10; count += 1) noisy.hear(5);
      noisy.receive(Uint8Array.from([50]), type, undefined, 160 * 99);
      noisy.tick(99);
      const before = powers.length;
      for (let count = 0; count < 10; count += 1) noisy.hear(5);

      const [lowest, highest] = [Math.min, Math.max].map((pick) =>
        pick(...powers.slice(20, before)),
      );
      // -50 dBov is an amplitude of 102.
      expect(lowest).toBeGreaterThan(80);
      expect(highest).toBeLessThan(125);
      expect(powers.at(-1)).toBeGreaterThan(4_000);
      expect(noisy.session.quality()).toMatchObject({ lossPercent: 0, concealedMs: 0 });
      expect(noisy.counts).toMatchObject({ received: 21, discarded: 0 });
    });

    test('gets lost frames as lost, and beside them what a bot and a recogniser hear', () => {
      const [arrived, heard]: [string[], number[]] = [[], []];
      const lossy = new SessionBench(() => ({
        done: false,
        push: (frame, lost, _, concealed) => {
          arrived.push(lost ? '-' : String(Math.round((frame[0] ?? 0) / 1_000)));
          heard.push(Math.round((concealed[80] ?? 0) / 1_000));
          return [];
        },
        stop: () => [],
      }));
      lossy.session.applyRemote(remote, 'answer');
      lossy.session.startDetection(settingsFor());
      for (let count = 0; count < 10; count += 1) lossy.hear(5);
      lossy.sequence += 1;
      lossy.timestamp += 160;
      lossy.tick(1);
      for (let count = 0; count < 10; count += 1) lossy.hear(5);

      expect(arrived.join(' ')).toBe('- - 5 5 5 5 5 5 5 5 5 5 - 5 5 5 5 5 5 5 5');
      expect(heard.slice(2).every((level) => level === 5)).toBe(true);
      expect(lossy.session.quality()).toMatchObject({ lossPercent: 4.76, concealedMs: 20 });
    });

    test('counts nothing as concealed if nobody listens', () => {
      bench.session.applyRemote(remote, 'answer');
      for (let count = 0; count < 10; count += 1) bench.hear(5);
      bench.sequence += 1;
      bench.timestamp += 160;
      for (let count = 0; count < 10; count += 1) bench.hear(5);

      expect(bench.session.quality()).toMatchObject({ concealedMs: 0 });
    });

    test('keeps its clock running during hold', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      bench.session.applyRemote({ ...remote, weSend: false, theySend: false }, 'answer');
      bench.tick(100);

      expect(bench.frames).toHaveLength(100);
    });

    test('reports the reason when it is stopped, once', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      bench.tick(5);
      bench.session.stopDetection('call-ended');
      bench.session.stopDetection('call-ended');
      bench.tick(5);

      expect(bench.amd).toEqual([{ event: 'amd_stopped', reason: 'call-ended', elapsedMs: 100 }]);
      expect(bench.frames).toHaveLength(5);
    });

    test('reports nothing if it was never started', () => {
      bench.session.stopDetection('call-ended');

      expect(bench.amd).toEqual([]);
    });

    test('gets no more frames and reports nothing more once it is done', () => {
      let pushed = 0;
      const once = new SessionBench(() => ({
        get done() {
          return pushed >= 3;
        },
        push: () => {
          pushed += 1;
          return pushed === 3 ? [{ event: 'amd_stopped', reason: 'no-speech', elapsedMs: 60 }] : [];
        },
        stop: () => [{ event: 'amd_stopped', reason: 'again', elapsedMs: 0 }],
      }));
      once.session.applyRemote(remote, 'answer');
      once.session.startDetection(settingsFor());
      once.tick(10);
      once.session.stopDetection('call-ended');

      expect(pushed).toBe(3);
      expect(once.amd.map((event) => event.reason)).toEqual(['no-speech']);
    });

    test.each([
      ['push', 60],
      ['stop', 40],
      ['creation', 0],
    ])('reports amd_error and amd_stopped if the detector throws in %s', (where, elapsedMs) => {
      let pushed = 0;
      const throwing = new SessionBench(() => {
        if (where === 'creation') throw new Error('scripted');
        return {
          done: false,
          push: () => {
            pushed += 1;
            if (where === 'push' && pushed === 3) throw new Error('scripted');
            return [];
          },
          stop: () => {
            throw new Error('scripted');
          },
        };
      });
      throwing.session.applyRemote(remote, 'answer');
      throwing.session.startDetection(settingsFor());
      throwing.tick(where === 'stop' ? 2 : 10);
      throwing.session.stopDetection('call-ended');

      expect(throwing.detectorErrors).toHaveLength(1);
      expect(throwing.amd).toEqual([
        { event: 'amd_error', reason: 'detector-failed', elapsedMs },
        { event: 'amd_stopped', reason: 'detector-failed', elapsedMs },
      ]);
    });
  });

  describe('senders', () => {
    test('are dropped and counted if strangers, of another payload type, or not RTP', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      bench.hear(1);
      bench.hear(9, '203.0.113.66:1234');
      bench.receive(new Uint8Array(160), 18);
      bench.session.receive(Uint8Array.from([1, 2, 3]), '192.0.2.1', 4_000);

      expect(bench.counts).toMatchObject({ received: 1, discarded: 3 });
    });

    test('cause no error by sending random packets from the right address', () => {
      const random = seededRandom(3_551);
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      for (let round = 0; round < 20_000; round += 1) {
        const packet = Uint8Array.from({ length: Math.floor(random() * 60) }, () =>
          Math.floor(random() * 256),
        );
        packet.set([0x80, [0, 8, 13, 101][round % 4] ?? 0].slice(0, packet.length));
        bench.session.receive(packet, '192.0.2.1', 4_000);
        bench.session.receiveRtcp(packet, '192.0.2.1', 4_001);
        if (round % 3 === 0) bench.tick(1);
      }

      expect(bench.frames).toHaveLength(6_667);
      expect(bench.dtmf.length).toBeLessThan(3_400);
    });

    test('are not accepted before any SDP', () => {
      bench.hear(1);

      expect(bench.counts).toMatchObject({ received: 0, discarded: 1 });
    });

    test('are replaced by a new SSRC when the previous one is silent', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      for (let level = 1; level <= 4; level += 1) bench.hear(level);
      bench.ssrc = 8;
      bench.sequence = 9;
      bench.timestamp = 123_456;
      for (let level = 11; level <= 20; level += 1) bench.hear(level);

      expect(bench.frames.join(' ')).toBe('- - 1 2 3 4 - - 13 14 15 16 17 18');
    });

    test('are heard one at a time, even if two frames of each are read at once', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      const own = { ssrc: 7, sequence: 500, timestamp: 8_000, level: 1 };
      const other = { ssrc: 8, sequence: 30_000, timestamp: 99, level: 20 };
      const send = ({ level, ...numbers }: typeof own, frame: number) => {
        const { ssrc, sequence, timestamp } = numbers;
        Object.assign(bench, {
          ssrc,
          sequence: sequence + frame,
          timestamp: timestamp + frame * 160,
        });
        bench.receive(new Uint8Array(160).fill(encodeMulaw(level * 1_000)));
      };
      // The sender whose packet came last sends first the next time, as if a packet of the first
      // sender were late.
      const batches = [own, other, own, other, own].map((first, index) => {
        const second = first === own ? other : own;
        const frame = 2 * index;
        return [first, second].flatMap((sender) => [
          { sender, frame },
          { sender, frame: frame + 1 },
        ]);
      });
      for (const batch of batches) {
        for (const { sender, frame } of batch) send(sender, frame);
        bench.tick(2);
      }

      expect(new Set(bench.frames)).toEqual(new Set(['-', '1']));
    });

    test('are heard one at a time: the first of two overlapping SSRCs is heard', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.startDetection(settingsFor());
      const other = { ssrc: 8, sequence: 30_000, timestamp: 99 };
      bench.hear(1);
      for (let level = 2; level <= 6; level += 1) {
        const own = { ssrc: bench.ssrc, sequence: bench.sequence, timestamp: bench.timestamp };
        Object.assign(bench, other);
        bench.receive(new Uint8Array(160).fill(encodeMulaw(20_000)));
        Object.assign(other, { sequence: bench.sequence, timestamp: bench.timestamp });
        Object.assign(bench, own);
        bench.hear(level);
      }

      expect(bench.frames.join(' ')).toBe('- - 1 2 3 4');
    });
  });

  describe('keys', () => {
    const press = (event: number, duration: number, end: boolean) =>
      Uint8Array.from([event, end ? 0x8a : 0x0a, duration >> 8, duration & 0xff]);

    test('are reported once each', () => {
      bench.session.applyRemote(remote, 'answer');
      for (const end of [false, true, true, true])
        bench.receive(press(5, 800, end), 101, undefined, 0);
      bench.timestamp += 1_600;
      for (const end of [true, true]) bench.receive(press(11, 400, end), 101, undefined, 0);

      expect(bench.dtmf).toEqual(['5:100', '#:50']);
    });

    test('are ignored before the answer', () => {
      bench.session.applyRemote(remote, 'early');
      bench.receive(press(5, 800, true), 101);

      expect(bench.dtmf).toEqual([]);
    });

    test('are reported by the clock if their end is lost', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.receive(press(1, 640, false), 101);
      bench.tick(10);

      expect(bench.dtmf).toEqual(['1:80']);
    });
  });

  describe('hold', () => {
    test('stops our packets, which resume with a marker and the right timestamp', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.tick(2);
      bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
      bench.tick(10);
      bench.session.applyRemote(remote, 'answer');
      bench.tick(2);

      expect(bench.sent.map((packet) => packet.marker)).toEqual([true, false, true, false]);
      expect(bench.sent.map((packet) => packet.sequence)).toEqual([65_535, 0, 1, 2]);
      expect((bench.sent[2]?.timestamp ?? 0) - (bench.sent[1]?.timestamp ?? 0)).toBe(11 * 160);
    });

    test('in the old way (0.0.0.0) keeps the address that was learned', () => {
      bench.session.applyRemote(remote, 'answer');
      const held = { ...remote, address: '0.0.0.0', addressWithheld: true, weSend: false };
      bench.session.applyRemote(held, 'answer');
      bench.hear(1);

      expect(bench.counts).toMatchObject({ received: 1, discarded: 0 });
    });

    test('does not unlock the source by an offer that changes nothing', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.hear(1);
      bench.tick(200);
      bench.session.applyRemote({ ...remote }, 'answer');
      for (let count = 0; count < 5; count += 1) bench.hear(9, '203.0.113.66:1234');

      expect(bench.counts).toMatchObject({ received: 1, discarded: 5 });
    });

    test('uses a new address at once', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.hear(1);
      bench.tick(200);
      bench.session.applyRemote({ ...remote, address: '192.0.2.9', port: 5_000 }, 'answer');
      bench.tick(1);

      expect(bench.sent.at(-1)?.to).toBe('192.0.2.9:5000');
    });
  });

  describe('inactivity', () => {
    test('is reported once for each silence, from the answer on', () => {
      bench.session.applyRemote(remote, 'early');
      bench.tick(inactivityFrames * 2);
      bench.session.applyRemote(remote, 'answer');
      bench.tick(inactivityFrames - 1);
      expect(bench.inactive).toBe(0);
      bench.tick(inactivityFrames * 2);
      expect(bench.inactive).toBe(1);
      bench.hear(1);
      bench.tick(inactivityFrames);

      expect(bench.inactive).toBe(2);
    });

    test('does not end by packets of strangers', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.hear(1);
      for (let tick = 0; tick < inactivityFrames; tick += 1) {
        bench.receive(new Uint8Array(160), 0, `203.0.113.66:${1_000 + tick}`);
        bench.tick(1);
      }

      expect(bench.inactive).toBe(1);
    });

    test('is prevented by RTCP reports of the far end, but not of others', () => {
      const report = Uint8Array.from(receiverReport(7));
      const live = (packet: Uint8Array, address: string, port: number) => {
        for (let round = 0; round < 4; round += 1) {
          bench.tick(inactivityFrames / 2);
          bench.session.receiveRtcp(packet, address, port);
        }
        return bench.inactive;
      };
      bench.session.applyRemote(remote, 'answer');

      expect(live(report, '192.0.2.1', 4_001)).toBe(0);
      expect(live(report.subarray(0, 2), '192.0.2.1', 4_001)).toBe(1);
      expect(bench.counts.discarded).toBe(4);
      bench.hear(1);
      expect(live(report, '203.0.113.66', 4_001)).toBe(2);
      bench.hear(1);
      expect(live(Uint8Array.from(receiverReport(8)), '192.0.2.1', 4_005)).toBe(3);
      bench.hear(1);
      expect(live(report, '192.0.2.1', 4_005)).toBe(3);
    });

    test('is not counted on hold', () => {
      bench.session.applyRemote(remote, 'answer');
      bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
      bench.tick(inactivityFrames * 3);
      expect(bench.inactive).toBe(0);
      bench.session.applyRemote(remote, 'answer');
      bench.tick(inactivityFrames);

      expect(bench.inactive).toBe(1);
    });
  });
});
