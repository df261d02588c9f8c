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

  /** Sends `count` packets in a row, and returns for each whether it was accepted. */
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

  test('starts with the address in the SDP', () => {
    expect(target()).toBe('192.0.2.1:4000');
    expect(packets(signalled, 4_000, 1)).toEqual([true]);
  });

  test('moves to the far end behind a NAT at the second packet', () => {
    expect(packets(elsewhere, 9_999, 3)).toEqual([false, true, true]);
    expect(target()).toBe('198.51.100.7:9999');
  });

  test('is not moved by a single stray packet, or by two unrelated ones', () => {
    packets(elsewhere, 9_999, 1);
    packets(elsewhere, 9_998, 1);
    packets(elsewhere, 9_998, 1, 2);
    sequence += 1_000;
    packets(elsewhere, 9_998, 1, 2);

    expect(target()).toBe('192.0.2.1:4000');
  });

  test('accepts no other address while the signalled one is heard', () => {
    for (let round = 0; round < 50; round += 1) {
      expect(packets(signalled, 4_000, 1)).toEqual([true]);
      expect(packets(elsewhere, 9_999, 2)).toEqual([false, false]);
      ticks(1);
    }
  });

  test('returns from a stranger to the signalled address', () => {
    packets(elsewhere, 9_999, 5);
    ticks(5);

    expect(packets(signalled, 4_000, 2)).toEqual([false, true]);
    expect(packets(elsewhere, 9_999, 2)).toEqual([false, false]);
  });

  test('prefers another port of the signalled host to a stranger', () => {
    packets(elsewhere, 9_999, 5);
    packets(signalled, 4_321, 2);

    expect(target()).toBe('192.0.2.1:4321');
  });

  test('moves away from a silent source in the first seconds', () => {
    packets(signalled, 4_000, 5);
    ticks(24);
    packets(elsewhere, 9_999, 3);
    expect(target()).toBe('192.0.2.1:4000');
    ticks(1);
    packets(elsewhere, 9_999, 2);

    expect(target()).toBe('198.51.100.7:9999');
  });

  test('is locked three seconds after the first packet, silent or not', () => {
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

    test('is stable until half a second passes without a packet', () => {
      expect(source.isStable).toBe(true);
      ticks(23);
      expect(source.isStable).toBe(true);
      ticks(1);
      expect(source.isStable).toBe(false);
      packets(signalled, 4_000, 1);
      expect(source.isStable).toBe(true);
    });

    test('follows the same sender to another port of a NAT if it is silent', () => {
      expect(packets(signalled, 4_321, 5)).not.toContain(true);
      ticks(25);

      expect(packets(signalled, 4_321, 3)).toEqual([false, true, true]);
      expect(target()).toBe('192.0.2.1:4321');
      expect(source.isStable).toBe(true);
      expect(packets(signalled, 4_000, 2)).toEqual([false, false]);
    });

    test('follows no other sender of that host and no other host, even if it is silent', () => {
      ticks(25);

      expect(packets(signalled, 4_321, 5, 2)).not.toContain(true);
      expect(packets(elsewhere, 4_000, 5)).not.toContain(true);
      expect(target()).toBe('192.0.2.1:4000');
    });

    test('is unsettled after an ICMP error until it moves or is signalled', () => {
      source.markUnreachable();
      packets(signalled, 4_000, 5);
      expect(source.isStable).toBe(false);
      ticks(25);
      packets(signalled, 4_321, 2);
      expect(source.isStable).toBe(true);

      source.markUnreachable();
      source.signal(signalled, 4_000);
      packets(signalled, 4_321, 1);
      ticks(150);
      packets(signalled, 4_321, 1);
      expect(source.isStable).toBe(true);
    });
  });

  test('is not stable before it is locked', () => {
    packets(signalled, 4_000, 5);
    ticks(149);
    packets(signalled, 4_000, 5);

    expect(source.isStable).toBe(false);
  });

  test('stays unlocked without a packet', () => {
    ticks(1_000);

    expect(source.locked).toBe(false);
    expect(packets(elsewhere, 9_999, 2)).toEqual([false, true]);
  });

  test('is unlocked and moved at once by a re-INVITE with a new address', () => {
    packets(signalled, 4_000, 1);
    ticks(200);
    source.signal('203.0.113.9', 5_000);

    expect(target()).toBe('203.0.113.9:5000');
    expect(packets(signalled, 4_000, 1)).toEqual([false]);
    expect(packets('203.0.113.9', 5_000, 1)).toEqual([true]);
  });

  test('is unlocked by a re-INVITE with the same address, and keeps what it learned', () => {
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

    test('is the far end’s if it comes from the address in the SDP', () => {
      source.signalRtcp(elsewhere, 7_000);

      expect(reports(elsewhere, 7_000)).toBe(true);
      expect(reports(elsewhere, 7_001)).toBe(false);
      expect(reports(signalled, 7_000)).toBe(false);
    });

    test('is the far end’s from the port of its audio and the one above, behind a NAT too', () => {
      packets(elsewhere, 9_999, 2);

      expect([9_998, 9_999, 10_000, 10_001].map((port) => reports(elsewhere, port, 5))).toEqual([
        ...[false, true, true, false],
      ]);
      expect(reports(signalled, 4_001, 5)).toBe(false);
    });

    test('is the far end’s from any port of its host if it has the SSRC that is heard', () => {
      expect(reports(signalled, 5_555)).toBe(false);
      packets(signalled, 4_000, 1);

      expect(reports(signalled, 5_555)).toBe(true);
      expect(reports(signalled, 5_555, 2)).toBe(false);
      expect(reports(elsewhere, 5_555)).toBe(false);
    });

    test('is not the far end’s by its old SSRC after the far end has moved', () => {
      packets(signalled, 4_000, 1);
      source.signal(elsewhere, 6_000);

      expect(reports(elsewhere, 5_555)).toBe(false);
      expect(reports(signalled, 5_555)).toBe(false);
    });
  });
});
