// The SIP engine beside the gateway's loop: the same engine in a worker thread. A thread that dies is reported to
// whoever asked with `onExit`; whether to start another is the caller's decision.

import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import type { Logger } from '../../lib/logger.ts';
import { siblingModule, spawnWorker } from '../../lib/spawn-worker.ts';
import type { SipEngineOptions, SipEngineStatistics } from './engine.ts';

export type EngineThreadOptions = Omit<SipEngineOptions, 'logger'> & {
  readonly logLevel: string;
  readonly nodeId?: string;
};

export type EngineThreadMessage =
  | {
      readonly kind: 'listening';
      readonly sipHost: string;
      readonly sipPort: number;
      readonly controlHost: string;
      readonly controlPort: number;
    }
  | { readonly kind: 'statistics'; readonly statistics: SipEngineStatistics };

export type SipEngineThread = AsyncDisposable & {
  readonly sipHost: string;
  readonly sipPort: number;
  readonly controlHost: string;
  readonly controlPort: number;
  close(): Promise<void>;
  statistics(): Promise<SipEngineStatistics>;
  /** Called once if the thread ends without being asked to, at once if it already has. */
  onExit(listener: (error: Error | undefined) => void): void;
};

/** A clean stop closes a few sockets; a thread that takes longer is ended. */
const stopTimeoutMs = 5_000;

/** `logger`: of the process, for what the thread logs. */
export async function startSipEngineThread(
  options: EngineThreadOptions,
  logger?: Logger,
): Promise<SipEngineThread> {
  const worker = spawnWorker(
    siblingModule('./engine-worker', import.meta.url),
    options,
    logger && { logger, part: 'sip-engine' },
  );
  const listening = await firstMessage(worker);
  const state: ThreadState = { closing: undefined, error: undefined, exited: false, listeners: [] };
  worker.on('error', (error) => {
    state.error = error instanceof Error ? error : new Error(String(error));
  });
  worker.on('exit', () => {
    state.exited = true;
    if (state.closing !== undefined) return;
    for (const listener of state.listeners) listener(state.error);
  });
  const close = (): Promise<void> => {
    state.closing ??= state.exited ? Promise.resolve() : stop(worker);
    return state.closing;
  };
  const { sipHost, sipPort, controlHost, controlPort } = listening;
  return {
    sipHost,
    sipPort,
    controlHost,
    controlPort,
    close,
    statistics: () => askStatistics(worker),
    onExit: (listener) => {
      if (state.exited && state.closing === undefined) listener(state.error);
      else state.listeners.push(listener);
    },
    [Symbol.asyncDispose]: close,
  };
}

type ThreadState = {
  closing: Promise<void> | undefined;
  error: Error | undefined;
  exited: boolean;
  readonly listeners: ((error: Error | undefined) => void)[];
};

type Listening = Extract<EngineThreadMessage, { kind: 'listening' }>;

async function firstMessage(worker: Worker): Promise<Listening> {
  const exited = new AbortController();
  const onExit = (): void => exited.abort(new Error('sip engine thread ended while starting'));
  worker.once('exit', onExit);
  try {
    // `once` rejects with the worker's own error when there is one.
    const [message] = (await once(worker, 'message', { signal: exited.signal })) as [Listening];
    return message;
  } catch (error) {
    await worker.terminate();
    throw new Error('the embedded SIP engine did not start', { cause: error });
  } finally {
    worker.off('exit', onExit);
  }
}

async function askStatistics(worker: Worker): Promise<SipEngineStatistics> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: EngineThreadMessage): void => {
      if (message.kind !== 'statistics') return;
      worker.off('message', onMessage);
      worker.off('exit', onExit);
      resolve(message.statistics);
    };
    const onExit = (): void => {
      worker.off('message', onMessage);
      reject(new Error('the sip engine thread is gone'));
    };
    worker.on('message', onMessage);
    worker.once('exit', onExit);
    worker.postMessage({ kind: 'statistics' });
  });
}

async function stop(worker: Worker): Promise<void> {
  const exited = once(worker, 'exit');
  worker.postMessage({ kind: 'stop' });
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), stopTimeoutMs);
  });
  try {
    if ((await Promise.race([exited, timeout])) === 'late') await worker.terminate();
  } finally {
    clearTimeout(timer);
  }
}
