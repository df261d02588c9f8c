import { describe, expect, test } from 'vitest';
import type { MediaCommand } from '../../../src/calls/media.ts';
import { canWait } from '../../../src/media/media-messages.ts';
import { type Pace, PlayoutClock, paceOf, phases } from '../../../src/media/playout/playout.ts';
import { PortPool } from '../../../src/media/rtp/port-pool.ts';

describe('the pace of a worker', () => {
  test.each([
    { pace: 2 },
    { areHurried: true, pace: 1 },
    { sendAllSilence: true, pace: 1 },
    { haveBot: true, pace: 0 },
    { areBridged: true, pace: 0 },
    { areBridged: true, haveBot: true, areHurried: true, sendAllSilence: true, pace: 0 },
  ])('of sessions that are nothing else: %j', ({ pace, areHurried = false, ...others }) => {
    const quiet = { areBridged: false, haveBot: false, sendAllSilence: false };

    expect(paceOf({ ...quiet, ...others, areHurried: () => areHurried })).toBe(pace);
  });

  test('waits for no message but those that end something', () => {
    const waits = (command: MediaCommand) => canWait({ kind: 'session', id: 1, command });

    expect(canWait({ kind: 'close', id: 1 })).toBe(true);
    expect(waits({ kind: 'stopDetection', reason: 'call-ended' })).toBe(true);
    expect(waits({ kind: 'stopPlayback' })).toBe(false);
    expect(canWait({ kind: 'open', id: 1 })).toBe(false);
  });
});

describe('playout clock', () => {
  function count(clock: PlayoutClock, nowMs: number, pace: Pace = 0) {
    const ticks = Array.from({ length: phases }, () => 0);
    let transmitted = 0;
    const caughtUp = clock.run(nowMs, pace, (phase, ofPhase, transmit) => {
      ticks[phase] = (ticks[phase] ?? 0) + ofPhase;
      if (transmit) transmitted += ofPhase;
    });
    return { ticks, transmitted, caughtUp };
  }

  test('each phase ticks once in 20 ms', () => {
    const clock = new PlayoutClock(1_000);

    expect(clock.nextMs(0)).toBe(1_005);
    expect(count(clock, 1_004).ticks).toEqual([0, 0, 0, 0]);
    expect(count(clock, 1_005).ticks).toEqual([1, 0, 0, 0]);
    expect(count(clock, 1_020).ticks).toEqual([0, 1, 1, 1]);
    expect(count(clock, 1_040).ticks).toEqual([1, 1, 1, 1]);
  });

  test('of a whole tick, all phases step when the last one does', () => {
    const clock = new PlayoutClock(1_000);

    expect(clock.nextMs(1)).toBe(1_020);
    expect(count(clock, 1_019, 1).ticks).toEqual([0, 0, 0, 0]);
    expect(count(clock, 1_020, 1)).toEqual({
      ticks: [1, 1, 1, 1],
      transmitted: 4,
      caughtUp: true,
    });
    expect(clock.nextMs(1)).toBe(1_040);
    // None of them counts as late before the last one is.
    expect(count(clock, 1_100, 1).transmitted).toBe(16);
    expect(count(clock, 1_181, 1).transmitted).toBe(12);
  });

  test('of two ticks, all phases take both when the last one is due', () => {
    const clock = new PlayoutClock(0);
    const ticked: number[][] = [];

    expect(clock.nextMs(2)).toBe(40);
    expect(count(clock, 39, 2).ticks).toEqual([0, 0, 0, 0]);
    clock.run(40, 2, (phase, ticks) => ticked.push([phase, ticks]));
    // Session by session, not tick by tick.
    expect(ticked).toEqual([
      [0, 2],
      [1, 2],
      [2, 2],
      [3, 2],
    ]);
    expect(clock.nextMs(2)).toBe(80);
    expect(count(clock, 10_000, 2).caughtUp).toBe(false);
  });

  test('two ticks at a time begin and cease in the middle of others, and no tick is lost', () => {
    const clock = new PlayoutClock(0);

    expect(count(clock, 10).ticks).toEqual([1, 1, 0, 0]);
    expect(clock.nextMs(2)).toBe(40);
    expect(count(clock, 40, 2).ticks).toEqual([1, 1, 2, 2]);
    expect(count(clock, 60, 1).ticks).toEqual([1, 1, 1, 1]);
    expect(count(clock, 80, 2).ticks).toEqual([1, 1, 1, 1]);
    expect(count(clock, 119, 2).ticks).toEqual([0, 0, 0, 0]);
    expect(count(clock, 119).ticks).toEqual([2, 2, 2, 1]);
    expect(count(clock, 120, 2).ticks).toEqual([0, 0, 0, 1]);
  });

  test('ticks begin and cease to be whole in the middle of one, and no tick is lost', () => {
    const clock = new PlayoutClock(0);

    expect(count(clock, 10).ticks).toEqual([1, 1, 0, 0]);
    expect(clock.nextMs(1)).toBe(20);
    expect(count(clock, 20, 1).ticks).toEqual([0, 0, 1, 1]);
    expect(count(clock, 31, 1).ticks).toEqual([0, 0, 0, 0]);
    expect(count(clock, 31).ticks).toEqual([1, 1, 0, 0]);
    expect(count(clock, 40).ticks).toEqual([0, 0, 1, 1]);
  });

  test('a late call makes up for every tick, and transmits for the last few only', () => {
    const clock = new PlayoutClock(0);

    expect(count(clock, 200)).toEqual({ ticks: [10, 10, 10, 10], transmitted: 13, caughtUp: true });
  });

  test('a very late call is made up for in parts, and no tick is lost', () => {
    const clock = new PlayoutClock(0);
    let total = 0;
    let parts = 0;
    for (let caughtUp = false; !caughtUp; parts += 1) {
      const step = count(clock, 10_000);
      total += step.ticks[0] ?? 0;
      caughtUp = step.caughtUp;
    }

    expect(total).toBe(500);
    expect(parts).toBe(50);
  });
});

describe('port pool', () => {
  const range = { portMin: 20_001, portMax: 20_013, drainMs: 5_000 };

  function takeAll(pool: PortPool, nowMs: number): number[] {
    const ports: number[] = [];
    for (let port = pool.take(nowMs); port !== undefined; port = pool.take(nowMs)) ports.push(port);
    return ports;
  }

  test('gives even ports whose odd neighbour is in the range', () => {
    const pool = new PortPool({ ...range, workerIndex: 0, workerCount: 1 });

    expect(takeAll(pool, 0)).toEqual([20_002, 20_004, 20_006, 20_008, 20_010, 20_012]);
    expect(pool.take(0)).toBeUndefined();
  });

  test('workers share the range without overlap', () => {
    const shares = [0, 1, 2, 3].map((workerIndex) =>
      takeAll(new PortPool({ ...range, workerIndex, workerCount: 4 }), 0),
    );

    expect(shares).toEqual([[20_002, 20_010], [20_004, 20_012], [20_006], [20_008]]);
  });

  test('a port given back rests, and the one that rested longest comes first', () => {
    const pool = new PortPool({ ...range, workerIndex: 0, workerCount: 3 });
    expect(takeAll(pool, 0)).toEqual([20_002, 20_008]);
    pool.release(20_008, 1_000);
    pool.release(20_002, 2_000);

    expect(takeAll(pool, 5_999)).toEqual([]);
    expect(takeAll(pool, 6_000)).toEqual([20_008]);
    expect(takeAll(pool, 7_000)).toEqual([20_002]);
  });

  test('the pool of a new worker goes on after the ports of the one that died', () => {
    const pool = new PortPool({ ...range, workerIndex: 0, workerCount: 1, startAfterPort: 20_006 });

    expect(takeAll(pool, 0)).toEqual([20_008, 20_010, 20_012, 20_002, 20_004, 20_006]);
  });
});
