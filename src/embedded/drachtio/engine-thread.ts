// Starts the SIP engine in a worker thread, so that the engine and the gateway don't slow down each
// other's event loop. If the thread dies, we notify the caller through `onExit`, so that the caller
// can decide whether to restart it.

import type { Worker } from 'node:worker_threads';
import type { Logger } from '../../lib/logger.ts';
import { type RunningThread, whenStarted } from '../../lib/threads/running-thread.ts';
import { siblingModule, spawnWorker } from '../../lib/threads/worker-threads.ts';
import type {
  SipEngineAddresses,
  SipEngineOptions,
  SipEngineStatistics,
  TlsTable,
} from './engine.ts';

export type EngineThreadOptions = Omit<SipEngineOptions, 'logger'> & {
  readonly logLevel: string;
  readonly nodeId?: string;
};

export type EngineThreadMessage =
  | ({ readonly kind: 'listening' } & SipEngineAddresses)
  | { readonly kind: 'statistics'; readonly statistics: SipEngineStatistics }
  /** `problem` says why the settings can't be used. */
  | { readonly kind: 'tls'; readonly problem?: string };

export type EngineThreadCommand =
  | { readonly kind: 'stop' | 'statistics' }
  | { readonly kind: 'tls'; readonly table: TlsTable };

export type SipEngineThread = RunningThread &
  SipEngineAddresses & {
    statistics(): Promise<SipEngineStatistics>;
    /**
     * Replaces the TLS settings. Resolves once they apply to all later commands, or if the thread
     * has ended.
     * @throws Error if the settings can't be used, in which case the old ones stay
     */
    useTls(table: TlsTable): Promise<void>;
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
  const statistics = async (): Promise<SipEngineStatistics> => {
    const reply = await ask(worker, { kind: 'statistics' });
    if (reply === undefined) throw new Error('the SIP engine thread has ended');
    return reply.statistics;
  };
  const useTls = async (table: TlsTable): Promise<void> => {
    const reply = await ask(worker, { kind: 'tls', table });
    if (reply?.problem !== undefined) throw new Error(reply.problem);
  };
  return { sipHost, sipPort, controlHost, controlPort, statistics, useTls, ...thread };
}

type Reply<Kind> = Extract<EngineThreadMessage, { kind: Kind }>;

/**
 * Sends a command to the thread, and waits for the message of the same kind.
 * @returns undefined if the thread has ended
 */
async function ask<Kind extends 'statistics' | 'tls'>(
  worker: Worker,
  command: EngineThreadCommand & { readonly kind: Kind },
): Promise<Reply<Kind> | undefined> {
  // The id is -1 once the thread has ended, and then there's no event any more.
  if (worker.threadId < 0) return undefined;
  return new Promise((resolve) => {
    const onMessage = (message: EngineThreadMessage): void => {
      if (message.kind !== command.kind) return;
      worker.off('exit', onExit);
      worker.off('message', onMessage);
      resolve(message as Reply<Kind>);
    };
    const onExit = (): void => {
      worker.off('message', onMessage);
      resolve(undefined);
    };
    worker.on('message', onMessage);
    worker.once('exit', onExit);
    worker.postMessage(command);
  });
}
