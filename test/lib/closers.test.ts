// Parts are closed one after the other, and none takes more time than it is given.

import { expect, test } from 'vitest';
import { Closers } from '../../src/lib/closers.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

const never = () => new Promise<void>(() => undefined);

test('closes parts in the opposite order, each once, even if one of them throws', async () => {
  const closers = new Closers(silentLogger);
  const closed: string[] = [];
  for (const name of ['database', 'calls', 'HTTP']) {
    closers.add(name, async () => {
      closed.push(name);
      if (name === 'calls') throw new Error('it broke');
    });
  }
  expect(closers.unclosed()).toEqual(['HTTP', 'calls', 'database']);

  const [left] = await Promise.all([closers.closeAll(), closers.closeAll()]);

  expect(closed).toEqual(['HTTP', 'calls', 'database']);
  expect([left, closers.unclosed()]).toEqual([[], []]);
});

test('leaves a part behind that does not close, names it, and closes the others', async () => {
  const { logger, lines } = recordedLogger();
  const closers = new Closers(logger);
  const closed: string[] = [];
  closers.add('database', () => void closed.push('database'));
  closers.add('calls', never);
  closers.add('HTTP', () => void closed.push('HTTP'));
  const closing = closers.closeAll(20);
  await Promise.resolve();
  expect(closers.unclosed()).toEqual(['calls', 'database']);

  expect(await closing).toEqual(['calls']);
  expect(closed).toEqual(['HTTP', 'database']);
  expect(lines).toMatchObject([{ level: 40, part: 'calls' }]);
});

test('keeps the reserved time of a part from the parts before it', async () => {
  const closers = new Closers(silentLogger);
  let isStored = false;
  const store = async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    isStored = true;
  };
  closers.add('database', store, { reservedMs: 60_000 });
  for (const name of ['a', 'b', 'c']) closers.add(name, never);

  // The other parts have no time left.
  expect(await closers.closeAll(60_000)).toEqual(['c', 'b', 'a']);
  expect(isStored).toBe(true);
});

test.each([
  [
    'does not close the last part if another was left behind',
    never,
    [] as string[],
    ['calls', 'lock'],
  ],
  ['closes the last part after all others', () => undefined, ['lock'], [] as string[]],
])('%s', async (_name, close, closedParts, leftParts) => {
  const closers = new Closers(silentLogger);
  const closed: string[] = [];
  closers.add('lock', () => void closed.push('lock'), { isLast: true });
  closers.add('calls', close);

  expect(await closers.closeAll(20)).toEqual(leftParts);
  expect(closed).toEqual(closedParts);
});
