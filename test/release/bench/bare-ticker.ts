// Starts the thread that only ticks, and reads how late it was.

import type { Worker } from 'node:worker_threads';
import { spawnWorker } from '../../../src/lib/threads/worker-threads.ts';
import type { Ticked } from './soak-ticker.ts';

export class BareTicker {
  readonly #thread: Worker = spawnWorker(new URL('./soak-ticker.ts', import.meta.url), undefined);

  read(): Promise<Ticked> {
    return new Promise((resolve) => {
      this.#thread.once('message', resolve);
      this.#thread.postMessage(undefined);
    });
  }

  async stop(): Promise<void> {
    await this.#thread.terminate();
  }
}
