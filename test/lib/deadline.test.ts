import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { deadline } from '../../src/lib/deadline.ts';

function collectGarbage(): void {
  setFlagsFromString('--expose_gc');
  (runInNewContext('gc') as () => void)();
  setFlagsFromString('--no-expose_gc');
}

/** As code does that has nothing but the signal. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}

test('comes, whatever is collected as garbage meanwhile', async () => {
  using waiting = deadline(50, new AbortController().signal);
  const over = aborted(waiting.signal);

  collectGarbage();

  await over;
});

test('comes early with the other signal', async () => {
  const force = new AbortController();
  using waiting = deadline(3_600_000, force.signal);
  const over = aborted(waiting.signal);

  force.abort();

  await over;
  using late = deadline(3_600_000, force.signal);
  expect(late.signal.aborted).toBe(true);
});
