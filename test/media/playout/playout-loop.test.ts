import { describe, expect, test } from 'vitest';
import { phases, tickMs } from '../../../src/media/playout/playout.ts';
import { PlayoutLoop } from '../../../src/media/playout/playout-loop.ts';
import { until } from '../support/observed.ts';

function loopOf({ mayRest }: { readonly mayRest: boolean }) {
  const world = {
    isIdle: false,
    foundIdle: false,
    steps: [] as number[],
    rests: [] as number[],
    stepsAtRests: [] as number[],
  };
  const loop = new PlayoutLoop(
    {
      step: (phase) => world.steps.push(phase),
      isIdle: () => {
        world.foundIdle ||= world.isIdle;
        return world.isIdle;
      },
      mayRest: () => mayRest,
    },
    // Nobody stands still here: the loop finds that no step is due, and rests again.
    {
      rest(forMs) {
        world.rests.push(forMs);
        world.stepsAtRests.push(world.steps.length);
      },
    },
  );
  return { loop, world };
}

describe.each([true, false])('playout loop, may rest: %s', (mayRest) => {
  test('steps through the phases in turn while somebody is there, and anew when somebody comes', async () => {
    const { loop, world } = loopOf({ mayRest });
    loop.start();
    loop.start();
    await until(() => world.steps.length >= 2 * phases, 'two ticks');
    world.isIdle = true;
    const inTurn = world.steps.map((_, index) => index % phases);

    expect(world.steps).toEqual(inTurn);
    expect(world.rests.length > 0).toBe(mayRest);
    expect(Math.max(0, ...world.rests)).toBeLessThanOrEqual(tickMs);
    // Between two rests, none of a tick or all of it.
    expect(world.stepsAtRests.filter((steps) => steps % phases !== 0)).toEqual([]);

    await until(() => world.foundIdle, 'a look at who is there');
    world.isIdle = false;
    world.steps.length = 0;
    loop.start();
    await until(() => world.steps.length > 0, 'a step');
    world.isIdle = true;
    expect(world.steps[0]).toBe(0);
  });
});
