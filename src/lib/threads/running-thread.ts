// A worker thread's life cycle. The thread sends a first message, then works until we ask it to
// stop, unless it dies before that.

import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { within } from '../within.ts';

export type RunningThread = AsyncDisposable & {
  /** Stops the thread and waits until it has ended. Idempotent. */
  close(): Promise<void>;
  /**
   * Calls the listener once if the thread ends on its own, or immediately if that has already
   * happened.
   */
  onExit(listener: (error: Error | undefined) => void): void;
};

/** A clean stop only closes a few sockets, so we terminate a thread that takes longer than this. */
const stopTimeoutMs = 5_000;

/**
 * Waits for the thread's first message.
 *
 * @throws Error if the thread ends before that message
 */
export async function whenStarted<First>(
  worker: Worker,
  { name, stopMessage }: { readonly name: string; readonly stopMessage: unknown },
): Promise<{ readonly first: First; readonly thread: RunningThread }> {
  const first = await firstMessage<First>(worker, name);
  const listeners: ((error: Error | undefined) => void)[] = [];
  let hasExited = false;
  let failure: Error | undefined;
  let closing: Promise<void> | undefined;
  worker.on('error', (error: unknown) => {
    failure = error instanceof Error ? error : new Error(String(error));
  });
  worker.once('exit', () => {
    hasExited = true;
    if (closing === undefined) for (const listener of listeners) listener(failure);
  });
  const close = (): Promise<void> => {
    closing ??= hasExited ? Promise.resolve() : stop(worker, stopMessage);
    return closing;
  };
  const thread: RunningThread = {
    close,
    onExit(listener) {
      if (hasExited && closing === undefined) listener(failure);
      else listeners.push(listener);
    },
    [Symbol.asyncDispose]: close,
  };
  return { first, thread };
}

async function firstMessage<First>(worker: Worker, name: string): Promise<First> {
  const exited = new AbortController();
  const onExit = (): void => exited.abort(new Error('its thread ended while starting'));
  worker.once('exit', onExit);
  try {
    // If the worker fails, `once` rejects with its error.
    const [message] = (await once(worker, 'message', { signal: exited.signal })) as [First];
    return message;
  } catch (error) {
    await worker.terminate();
    throw new Error(`${name} did not start`, { cause: error });
  } finally {
    worker.off('exit', onExit);
  }
}

async function stop(worker: Worker, message: unknown): Promise<void> {
  const exited = once(worker, 'exit');
  worker.postMessage(message);
  await within(exited, stopTimeoutMs);
  await worker.terminate();
}
