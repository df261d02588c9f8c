import { describe, expect, test } from 'vitest';
import { PlayoutClock, PlayoutLoop, tickMs } from '../../../src/media/playout/playout.ts';
import { eventually } from '../../support/eventually.ts';

describe('playout clock', () => {
  function count(clock: PlayoutClock, nowMs: number) {
    let ticks = 0;
    let transmitted = 0;
    const caughtUp = clock.run(nowMs, (transmit) => {
      ticks += 1;
      if (transmit) transmitted += 1;
    });
    return { ticks, transmitted, caughtUp };
  }

  test('ticks once in 20 ms, and does not drift', () => {
    const clock = new PlayoutClock(1_000);

    expect(clock.dueMs).toBe(1_020);
    expect(count(clock, 1_019).ticks).toBe(0);
    expect(count(clock, 1_023).ticks).toBe(1);
    expect(clock.dueMs).toBe(1_040);
    expect(count(clock, 1_039).ticks).toBe(0);
    expect(count(clock, 1_040)).toEqual({ ticks: 1, transmitted: 1, caughtUp: true });
  });

  test('makes up for every missed tick, and transmits only in the last few', () => {
    const clock = new PlayoutClock(0);

    expect(count(clock, 200)).toEqual({ ticks: 10, transmitted: 4, caughtUp: true });
  });

  test('makes up for a long delay in parts, and loses no tick', () => {
    const clock = new PlayoutClock(0);
    let total = 0;
    let parts = 0;
    for (let caughtUp = false; !caughtUp; parts += 1) {
      const part = count(clock, 10_000);
      total += part.ticks;
      caughtUp = part.caughtUp;
    }

    expect(total).toBe(500);
    expect(parts).toBe(16);
  });
});

describe.each([
  { mayRest: true, waits: 'stands still until the next tick' },
  { mayRest: false, waits: 'waits for a timer' },
])('playout loop that $waits', ({ mayRest }) => {
  test('ticks while there are sessions, and again when a new one comes', async () => {
    const world = { isIdle: false, foundIdle: false, ticks: 0, rests: [] as number[] };
    const loop = new PlayoutLoop(
      {
        tick: () => {
          world.ticks += 1;
        },
        isIdle: () => {
          world.foundIdle ||= world.isIdle;
          return world.isIdle;
        },
        mayRest: () => mayRest,
        ran: () => undefined,
      },
      // The thread does not sleep here: the loop finds that no tick is due, and rests again.
      { rest: (forMs) => world.rests.push(forMs) },
    );
    loop.start();
    loop.start();
    await eventually(() => world.ticks >= 4, 'the loop has run four ticks');
    expect(world.rests.length > 0).toBe(mayRest);
    expect(Math.max(0, ...world.rests)).toBeLessThanOrEqual(tickMs);

    world.isIdle = true;
    await eventually(() => world.foundIdle, 'the loop finds that it is idle');
    world.isIdle = false;
    world.ticks = 0;
    loop.start();
    await eventually(() => world.ticks > 0, 'the loop ticks again');
    world.isIdle = true;
  });
});
