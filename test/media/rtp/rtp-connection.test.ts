import { beforeEach, describe, expect, test } from 'vitest';
import { forEachTest } from '../../support/opened.ts';
import { settingsFor } from '../support/observed.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const signalled = '192.0.2.1:4000';
const remapped = '192.0.2.1:4321';
const lockedAfterFrames = 150;
const silentFrames = 25;

describe('the connection of an RTP session', () => {
  const bench = forEachTest(() => new SessionBench());
  beforeEach(() => {
    bench.session.applyRemote(remote, 'answer');
  });

  function hear(frames: number, from = signalled): void {
    for (let frame = 0; frame < frames; frame += 1) bench.hear(1, from);
  }

  test('is made once, when the source is locked', () => {
    hear(lockedAfterFrames - 1);
    expect(bench.connections).toEqual([]);
    hear(100);

    expect(bench.connections).toEqual([`connect ${signalled}`]);
  });

  test('ends with the 25th frame without a packet, and comes back with the next packet', () => {
    hear(lockedAfterFrames);
    bench.tick(silentFrames - 2);
    expect(bench.connections).toHaveLength(1);
    bench.tick(1);
    expect(bench.connections).toEqual([`connect ${signalled}`, 'disconnect']);
    hear(1);

    expect(bench.connections.at(-1)).toBe(`connect ${signalled}`);
  });

  test('follows a NAT that changes the port in mid-speech after 26 lost frames', () => {
    bench.session.startDetection(settingsFor());
    hear(lockedAfterFrames);
    bench.frames.length = 0;
    for (let frame = 0; frame < 40; frame += 1) {
      // The kernel drops the new port's packets while the socket is connected.
      if (bench.connections.at(-1) !== `connect ${signalled}`) hear(1, remapped);
      else {
        bench.sequence += 1;
        bench.timestamp += 160;
        bench.tick(1);
      }
    }

    expect(bench.connections.slice(1)).toEqual(['disconnect', `connect ${remapped}`]);
    expect(bench.sent.at(-1)?.to).toBe(remapped);
    expect(bench.frames.filter((frame) => frame === '-').length).toBeLessThanOrEqual(26);
  });

  test('ends at once with a new address in the SDP, also on hold', () => {
    hear(lockedAfterFrames);
    bench.session.applyRemote({ ...remote, address: '192.0.2.9', weSend: false }, 'answer');

    expect(bench.connections).toEqual([`connect ${signalled}`, 'disconnect']);
    hear(lockedAfterFrames, '192.0.2.9:4000');
    expect(bench.connections.at(-1)).toBe('connect 192.0.2.9:4000');
  });

  test('ends with a hold by direction, and is made after resume when the source is locked again', () => {
    hear(lockedAfterFrames);
    bench.session.applyRemote({ ...remote, weSend: false, theySend: false }, 'answer');
    bench.tick(500);
    expect(bench.connections).toEqual([`connect ${signalled}`, 'disconnect']);
    bench.session.applyRemote(remote, 'answer');
    hear(lockedAfterFrames);

    expect(bench.connections.slice(2)).toEqual([`connect ${signalled}`]);
  });

  test('ends by silence during a hold in the old way (0.0.0.0)', () => {
    hear(lockedAfterFrames);
    const held = { ...remote, address: '0.0.0.0', addressWithheld: true, weSend: false };
    bench.session.applyRemote(held, 'answer');
    bench.tick(silentFrames);

    expect(bench.connections).toEqual([`connect ${signalled}`, 'disconnect']);
  });

  test('survives an offer that changes nothing', () => {
    hear(lockedAfterFrames);
    bench.session.applyRemote({ ...remote }, 'answer');
    hear(10);

    expect(bench.connections).toEqual([`connect ${signalled}`]);
  });

  test('is not used again for an unreachable far end, which is still sent to and heard', () => {
    hear(lockedAfterFrames);
    bench.session.unreachable();
    hear(100);

    expect(bench.connections).toEqual([`connect ${signalled}`, 'disconnect']);
    expect(bench.sent.at(-1)?.to).toBe(signalled);
    expect(bench.counts.discarded).toBe(0);
  });

  test('is unaffected by an ICMP error before it was made', () => {
    bench.session.unreachable();

    expect(bench.connections).toEqual([]);
  });
});
