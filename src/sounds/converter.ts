// Converts sounds beside the main thread: what is short at once, the rest in a thread that ends when it is idle.

import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { siblingModule, spawnWorker } from '../lib/threads/worker-threads.ts';
import { takeTurns } from '../lib/turns.ts';
import { within } from '../lib/within.ts';
import { type Conversion, convert, isQuick } from './conversion.ts';

export type Converter = {
  /** Rejects where too many wait, or the thread does not answer. */
  convert(file: Buffer): Promise<Conversion>;
  close(): Promise<void>;
};

/** Ten minutes of 48 kHz take some 3 s of a core. */
const conversionTimeoutMs = 30_000;
/** Their files are in memory: 10 MB each. */
const maxWaiting = 10;
/** Sounds are uploaded one after the other. */
const idleMs = 10_000;

export function createConverter(): Converter {
  const turns = takeTurns(
    { running: 1, waiting: maxWaiting },
    () => new Error('too many sounds wait for their conversion'),
  );
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  const stop = async (): Promise<void> => {
    clearTimeout(idle);
    const stopped = worker;
    worker = undefined;
    await stopped?.terminate();
  };
  const convertBeside = async (file: Buffer): Promise<Conversion> => {
    clearTimeout(idle);
    worker ??= spawnWorker(siblingModule('./conversion-worker', import.meta.url), undefined);
    try {
      const converted = await answerOf(worker, file);
      // Ending a thread does not fail: Node fulfils that promise when the thread has exited.
      idle = setTimeout(() => {
        stop().catch(() => undefined);
      }, idleMs);
      idle.unref();
      return converted;
    } catch (error) {
      await stop();
      throw new Error('a sound was not converted', { cause: error });
    }
  };
  return {
    convert: async (file) =>
      isQuick(file) ? convert(file) : await turns(() => convertBeside(file)),
    close: stop,
  };
}

async function answerOf(worker: Worker, file: Buffer): Promise<Conversion> {
  const exited = new AbortController();
  const onExit = (): void => exited.abort(new Error('its thread ended'));
  worker.once('exit', onExit);
  try {
    worker.postMessage(file);
    // `once` rejects with the worker's own error when there is one.
    const answer = once(worker, 'message', { signal: exited.signal });
    const message = await within(answer, conversionTimeoutMs);
    if (message === undefined) throw new Error('its thread does not answer');
    const [converted] = message as [Conversion];
    return converted;
  } finally {
    worker.off('exit', onExit);
  }
}
