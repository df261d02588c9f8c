// Starts the SIP engine in a worker thread, so that the engine and the gateway don't slow down each
// other's event loop. If the thread dies, we notify the caller through `onExit`, so that the caller
// can decide whether to restart it.

import type { Worker } from 'node:worker_threads';
import type { Logger } from '../../lib/logger.ts';
import { type RunningThread, whenStarted } from '../../lib/threads/running-thread.ts';
import { siblingModule, spawnWorker } from '../../lib/threads/worker-threads.ts';
import type { SipEngineAddresses, SipEngineOptions, SipEngineStatistics } from './engine.ts';

export type EngineThreadOptions = Omit<SipEngineOptions, 'logger'> & {
  readonly logLevel: string;
  readonly nodeId?: string;
};

export type EngineThreadMessage =
  | ({ readonly kind: 'listening' } & SipEngineAddresses)
  | { readonly kind: 'statistics'; readonly statistics: SipEngineStatistics };

export type SipEngineThread = RunningThread &
  SipEngineAddresses & {
    statistics(): Promise<SipEngineStatistics>;
  };

type Listening = Extract<EngineThreadMessage, { kind: 'listening' }>;

/** @param logger the process's logger, which receives the thread's log lines */
export async function startSipEngineThread(
  options: EngineThreadOptions,
  logger?: Logger,
): Promise<SipEngineThread> {
  const worker = spawnWorker(
    siblingModule('./engine-worker', import.meta.url),
    options,
    logger && { logger, part: 'sip-engine' },
  );
  const { first, thread } = await whenStarted<Listening>(worker, {
    name: 'the embedded SIP engine',
    stopMessage: { kind: 'stop' },
  });
  const { sipHost, sipPort, controlHost, controlPort } = first;
  const statistics = (): Promise<SipEngineStatistics> => askStatistics(worker);
  return { sipHost, sipPort, controlHost, controlPort, statistics, ...thread };
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
      reject(new Error('the SIP engine thread has ended'));
    };
    worker.on('message', onMessage);
    worker.once('exit', onExit);
    worker.postMessage({ kind: 'statistics' });
  });
}
