// The end of a process's calls, where the database does not say what was taken last.

import { expect, test } from 'vitest';
import { createDrain } from '../../src/app/drain.ts';
import { eventually } from '../support/eventually.ts';

/** Calls that are up until they are hung up. */
function world(up: readonly string[]) {
  const calls = new Set(up);
  const hungUp: string[] = [];
  let told = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    told = resolve;
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
  return { ...createDrain(registry, () => stopped), calls, hungUp, told: () => told() };
}

test('hangs up at once when it is forced to, though the last take is not answered', async () => {
  const { drain, isDraining, hungUp, told } = world(['call-1']);
  const force = new AbortController();
  const drained = drain(600_000, force.signal);
  expect([isDraining(), hungUp]).toEqual([true, []]);

  force.abort();
  await eventually(() => hungUp.length === 1, 'it is hung up');
  told();
  await drained;
});

test('hangs up when its time is over, the wait for the last take included', async () => {
  const { drain, hungUp, told } = world(['call-1']);
  const drained = drain(20, new AbortController().signal);

  await eventually(() => hungUp.length === 1, 'it is hung up');
  told();
  await drained;
});

test('hangs up what the last take has brought meanwhile', async () => {
  const { drain, calls, hungUp, told } = world(['call-1']);
  const drained = drain(0, AbortSignal.abort());
  await eventually(() => hungUp.length === 1, 'it is hung up');

  calls.add('call-2');
  told();
  await drained;
  expect(hungUp).toEqual(['call-1', 'call-2']);
});
