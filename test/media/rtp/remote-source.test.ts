import { beforeEach, describe, expect, test } from 'vitest';
import { RemoteSource } from '../../../src/media/rtp/remote-source.ts';
import { forEachTest } from '../../support/opened.ts';

const signalled = '192.0.2.1';
const elsewhere = '198.51.100.7';

describe('remote source', () => {
  let sequence: number;

  const source = forEachTest(() => new RemoteSource());
  beforeEach(() => {
    source.signal(signalled, 4_000);
    sequence = 65_530;
  });

  /** `count` packets in a row; what became of each. */
  function packets(address: string, port: number, count: number, ssrc = 1): boolean[] {
    return Array.from({ length: count }, () => {
      sequence = (sequence + 1) & 0xffff;
      return source.accept(address, port, ssrc, sequence);
    });
  }

  function ticks(count: number): void {
    for (let tick = 0; tick < count; tick += 1) source.tick();
  }

  function target(): string {
    return `${source.address}:${source.port}`;
  }

  test('begins with the address in the SDP', () => {
    expect(target()).toBe('192.0.2.1:4000');
    expect(packets(signalled, 4_000, 1)).toEqual([true]);
  });

  test('follows the packets to where a NAT has put the far end, at the second one', () => {
    expect(packets(elsewhere, 9_999, 3)).toEqual([false, true, true]);
    expect(target()).toBe('198.51.100.7:9999');
  });

  test('a single stray packet, or two that do not belong together, move nothing', () => {
    packets(elsewhere, 9_999, 1);
    packets(elsewhere, 9_998, 1);
    packets(elsewhere, 9_998, 1, 2);
    sequence += 1_000;
    packets(elsewhere, 9_998, 1, 2);

    expect(target()).toBe('192.0.2.1:4000');
  });

  test('while the signalled address is heard no other is', () => {
    for (let round = 0; round < 50; round += 1) {
      expect(packets(signalled, 4_000, 1)).toEqual([true]);
      expect(packets(elsewhere, 9_999, 2)).toEqual([false, false]);
      ticks(1);
    }
  });

  test('the signalled address takes back what a stranger got first', () => {
    packets(elsewhere, 9_999, 5);
    ticks(5);

    expect(packets(signalled, 4_000, 2)).toEqual([false, true]);
    expect(packets(elsewhere, 9_999, 2)).toEqual([false, false]);
  });

  test('another port of the signalled host goes before a stranger', () => {
    packets(elsewhere, 9_999, 5);
    packets(signalled, 4_321, 2);

    expect(target()).toBe('192.0.2.1:4321');
  });

  test('in the first seconds a source that fell silent may move on', () => {
    packets(signalled, 4_000, 5);
    ticks(24);
    packets(elsewhere, 9_999, 3);
    expect(target()).toBe('192.0.2.1:4000');
    ticks(1);
    packets(elsewhere, 9_999, 2);

    expect(target()).toBe('198.51.100.7:9999');
  });

  test('three seconds after the first packet the source is locked, silent or not', () => {
    packets(signalled, 4_000, 1);
    ticks(150);

    expect(source.locked).toBe(true);
    expect(packets(elsewhere, 9_999, 50)).not.toContain(true);
    expect(packets(signalled, 4_000, 1)).toEqual([true]);
  });

  describe('locked', () => {
    beforeEach(() => {
      packets(signalled, 4_000, 1);
      ticks(149);
      packets(signalled, 4_000, 1);
      ticks(1);
    });

    test('it is settled while it is heard: until half a second without a packet', () => {
      expect(source.settled).toBe(true);
      ticks(23);
      expect(source.settled).toBe(true);
      ticks(1);
      expect(source.settled).toBe(false);
      packets(signalled, 4_000, 1);
      expect(source.settled).toBe(true);
    });

    test('silent, it follows the same sender to another port: a NAT has mapped it anew', () => {
      expect(packets(signalled, 4_321, 5)).not.toContain(true);
      ticks(25);

      expect(packets(signalled, 4_321, 3)).toEqual([false, true, true]);
      expect(target()).toBe('192.0.2.1:4321');
      expect(source.settled).toBe(true);
      expect(packets(signalled, 4_000, 2)).toEqual([false, false]);
    });

    test('silent, it follows no other sender of that host, and none of another host', () => {
      ticks(25);

      expect(packets(signalled, 4_321, 5, 2)).not.toContain(true);
      expect(packets(elsewhere, 4_000, 5)).not.toContain(true);
      expect(target()).toBe('192.0.2.1:4000');
    });

    test('unreachable, it is settled no more until it moves or is signalled', () => {
      source.markUnreachable();
      packets(signalled, 4_000, 5);
      expect(source.settled).toBe(false);
      ticks(25);
      packets(signalled, 4_321, 2);
      expect(source.settled).toBe(true);

      source.markUnreachable();
      source.signal(signalled, 4_000);
      packets(signalled, 4_321, 1);
      ticks(150);
      packets(signalled, 4_321, 1);
      expect(source.settled).toBe(true);
    });
  });

  test('before it is locked it is not settled', () => {
    packets(signalled, 4_000, 5);
    ticks(149);
    packets(signalled, 4_000, 5);

    expect(source.settled).toBe(false);
  });

  test('without a packet it stays open', () => {
    ticks(1_000);

    expect(source.locked).toBe(false);
    expect(packets(elsewhere, 9_999, 2)).toEqual([false, true]);
  });

  test('a re-INVITE with a new address opens the lock and moves at once', () => {
    packets(signalled, 4_000, 1);
    ticks(200);
    source.signal('203.0.113.9', 5_000);

    expect(target()).toBe('203.0.113.9:5000');
    expect(packets(signalled, 4_000, 1)).toEqual([false]);
    expect(packets('203.0.113.9', 5_000, 1)).toEqual([true]);
  });

  test('a re-INVITE with the same address opens the lock and keeps what was learned', () => {
    packets(elsewhere, 9_999, 2);
    ticks(200);
    source.signal(signalled, 4_000);

    expect(target()).toBe('198.51.100.7:9999');
    packets(elsewhere, 7_777, 2);
    expect(target()).toBe('198.51.100.7:7777');
  });

  describe('RTCP', () => {
    const reports = (address: string, port: number, ssrc = 1) =>
      source.reportsFrom(address, port, ssrc);

    test('is the far end’s from where the SDP says', () => {
      source.signalRtcp(elsewhere, 7_000);

      expect(reports(elsewhere, 7_000)).toBe(true);
      expect(reports(elsewhere, 7_001)).toBe(false);
      expect(reports(signalled, 7_000)).toBe(false);
    });

    test('is the far end’s from the port of its audio and the one above, wherever a NAT has put them', () => {
      packets(elsewhere, 9_999, 2);

      expect([9_998, 9_999, 10_000, 10_001].map((port) => reports(elsewhere, port, 5))).toEqual([
        ...[false, true, true, false],
      ]);
      expect(reports(signalled, 4_001, 5)).toBe(false);
    });

    test('is the far end’s from any port of its host where it names the SSRC that is heard', () => {
      expect(reports(signalled, 5_555)).toBe(false);
      packets(signalled, 4_000, 1);

      expect(reports(signalled, 5_555)).toBe(true);
      expect(reports(signalled, 5_555, 2)).toBe(false);
      expect(reports(elsewhere, 5_555)).toBe(false);
    });

    test('names nothing that is heard after the far end has moved', () => {
      packets(signalled, 4_000, 1);
      source.signal(elsewhere, 6_000);

      expect(reports(elsewhere, 5_555)).toBe(false);
      expect(reports(signalled, 5_555)).toBe(false);
    });
  });
});
