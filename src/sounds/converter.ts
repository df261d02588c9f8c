// Converts sounds. Short conversions run directly on the main thread. Longer ones run in a separate
// thread, which we stop when it has been idle for a while.

import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { siblingModule, spawnWorker } from '../lib/threads/worker-threads.ts';
import { takeTurns } from '../lib/turns.ts';
import { within } from '../lib/within.ts';
import { type Conversion, convert, isQuick } from './conversion.ts';

export type Converter = {
  /**
   * @throws Error if too many conversions are waiting, or if the thread fails or doesn't respond
   */
  convert(file: Buffer): Promise<Conversion>;
  close(): Promise<void>;
};

/** 30 s is generous, since ten minutes of audio at 48 kHz take about 3 s on one core. */
const conversionTimeoutMs = 30_000;
/**
 * Limits the conversions that are waiting, because each of them keeps a file of up to 10 MB in
 * memory.
 */
const maxWaiting = 10;
/** We keep an idle thread for this long, because sounds are often uploaded one after another. */
const idleMs = 10_000;

export function createConverter(): Converter {
  const turns = takeTurns(
    { running: 1, waiting: maxWaiting },
    () => new Error('too many sounds are waiting for conversion'),
  );
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  const stop = async (): Promise<void> => {
    clearTimeout(idle);
    const stopped = worker;
    worker = undefined;
    await stopped?.terminate();
  };
  const convertInThread = async (file: Buffer): Promise<Conversion> => {
    clearTimeout(idle);
    worker ??= spawnWorker(siblingModule('./conversion-worker', import.meta.url), undefined);
    try {
      const converted = await convertIn(worker, file);
      // `terminate` can't fail, because Node resolves its promise when the thread has exited.
      idle = setTimeout(() => {
        stop().catch(() => undefined);
      }, idleMs);
      idle.unref();
      return converted;
    } catch (error) {
      await stop();
      throw new Error('could not convert a sound', { cause: error });
    }
  };
  return {
    convert: async (file) =>
      isQuick(file) ? convert(file) : await turns(() => convertInThread(file)),
    close: stop,
  };
}

async function convertIn(worker: Worker, file: Buffer): Promise<Conversion> {
  const exited = new AbortController();
  const onExit = (): void => exited.abort(new Error('the conversion thread ended'));
  worker.once('exit', onExit);
  try {
    worker.postMessage(file);
    // `once` rejects with the worker's own error if the worker reports one.
    const response = once(worker, 'message', { signal: exited.signal });
    const message = await within(response, conversionTimeoutMs);
    if (message === undefined) throw new Error('the conversion thread does not respond');
    const [converted] = message as [Conversion];
    return converted;
  } finally {
    worker.off('exit', onExit);
  }
}
