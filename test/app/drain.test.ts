// How a process ends its calls if the database does not answer the last take.

import { expect, test } from 'vitest';
import { createDrain } from '../../src/app/drain.ts';
import { eventually } from '../support/eventually.ts';

/**
 * A drain over a registry whose calls stay up until they are hung up. `answer` ends the last take.
 */
function world(up: readonly string[]) {
  const calls = new Set(up);
  const hungUp: string[] = [];
  let answer = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const registry = {
    empty: async (signal: AbortSignal) => {
      await eventually(
        () => calls.size === 0 || signal.aborted,
        'no call is left, or the time is over',
      );
    },
    endAll: () => {
      hungUp.push(...calls);
      calls.clear();
    },
  };
  return { ...createDrain(registry, () => stopped), calls, hungUp, answer: () => answer() };
}

test('hangs up at once when it is forced to, even if the last take is not answered', async () => {
  const { drain, isDraining, hungUp, answer } = world(['call-1']);
  const force = new AbortController();
  const drained = drain(600_000, force.signal);
  expect([isDraining(), hungUp]).toEqual([true, []]);

  force.abort();
  await eventually(() => hungUp.length === 1, 'the call is hung up');
  answer();
  await drained;
});

test('hangs up when its time is over, including the wait for the last take', async () => {
  const { drain, hungUp, answer } = world(['call-1']);
  const drained = drain(20, new AbortController().signal);

  await eventually(() => hungUp.length === 1, 'the call is hung up');
  answer();
  await drained;
});

test('hangs up a call that the last take brings after the hang-up of the others', async () => {
  const { drain, calls, hungUp, answer } = world(['call-1']);
  const drained = drain(0, AbortSignal.abort());
  await eventually(() => hungUp.length === 1, 'the call is hung up');

  calls.add('call-2');
  answer();
  await drained;
  expect(hungUp).toEqual(['call-1', 'call-2']);
});
