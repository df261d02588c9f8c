import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createRestMemory, ThreadRest, wake } from '../../../src/lib/threads/thread-rest.ts';
import { spawnWorker } from '../../../src/lib/threads/worker-threads.ts';

/** Longer than any test. */
const foreverMs = 600_000;

describe('the rest of a thread', () => {
  test('lasts for the given time', () => {
    const rest = new ThreadRest(createRestMemory());
    const startedAt = performance.now();
    rest.rest(20);

    expect(performance.now() - startedAt).toBeGreaterThan(19);
  });

  test('ends at once if a message was posted since the previous rest', () => {
    const memory = createRestMemory();
    const rest = new ThreadRest(memory);
    rest.rest(0);
    wake(memory);
    const startedAt = performance.now();
    rest.rest(foreverMs);
    // The earlier wake-up no longer counts, so this rest takes its time.
    rest.rest(20);

    expect(performance.now() - startedAt).toBeGreaterThan(19);
  });

  test('ends when another thread posts a message, which is read next', async () => {
    const memory = createRestMemory();
    const worker = spawnWorker(new URL('./support/resting-worker.ts', import.meta.url), memory);
    try {
      await once(worker, 'message');
      worker.postMessage('hello');
      wake(memory);

      expect(await once(worker, 'message')).toEqual(['hello']);
    } finally {
      await worker.terminate();
    }
  });
});
