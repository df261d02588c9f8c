import { describe, expect, test } from 'vitest';
import { type Pace, phases, tickMs } from '../../../src/media/playout/playout.ts';
import { PlayoutLoop } from '../../../src/media/playout/playout-loop.ts';
import { until } from '../support/observed.ts';

function loopOf(pace: Pace) {
  const world = {
    isIdle: false,
    foundIdle: false,
    steps: [] as number[],
    rests: [] as number[],
    stepsAtRests: [] as number[],
  };
  const loop = new PlayoutLoop(
    {
      step: (phase, ticks) => {
        for (let tick = 0; tick < ticks; tick += 1) world.steps.push(phase);
      },
      isIdle: () => {
        world.foundIdle ||= world.isIdle;
        return world.isIdle;
      },
      pace: () => pace,
      ran: () => undefined,
    },
    // The thread does not stand still here: the loop finds that no step is due, and rests again.
    {
      rest(forMs) {
        world.rests.push(forMs);
        world.stepsAtRests.push(world.steps.length);
      },
    },
  );
  return { loop, world };
}

const onceInTurn = [0, 1, 2, 3];
const twiceInTurn = [0, 0, 1, 1, 2, 2, 3, 3];

describe.each([
  { pace: 0, turn: onceInTurn },
  { pace: 1, turn: onceInTurn },
  { pace: 2, turn: twiceInTurn },
] as const)('playout loop at pace $pace', ({ pace, turn }) => {
  test('steps through the phases in turn while there are sessions, and anew when one comes', async () => {
    const { loop, world } = loopOf(pace);
    loop.start();
    loop.start();
    await until(() => world.steps.length >= 4 * phases, 'four ticks');
    world.isIdle = true;
    const inTurn = world.steps.map((_, index) => turn[index % turn.length]);

    expect(world.steps).toEqual(inTurn);
    expect(world.rests.length > 0).toBe(pace > 0);
    expect(Math.max(0, ...world.rests)).toBeLessThanOrEqual(pace * tickMs);
    // Between two rests, no step of any phase or the steps of all.
    expect(world.stepsAtRests.filter((steps) => steps % turn.length !== 0)).toEqual([]);

    await until(() => world.foundIdle, 'a look at who is there');
    world.isIdle = false;
    world.steps.length = 0;
    loop.start();
    await until(() => world.steps.length > 0, 'a step');
    world.isIdle = true;
    expect(world.steps[0]).toBe(0);
  });
});
