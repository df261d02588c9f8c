// The sandbox beside the gateway's loop, in a worker thread of its own: its callees keep speaking evenly while the gateway
// is busy, as people do.

import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import type { Logger } from '../../lib/logger.ts';
import { siblingModule, spawnWorker } from '../../lib/spawn-worker.ts';
import type { SandboxOptions } from './sandbox.ts';

export type SandboxThreadOptions = Pick<SandboxOptions, 'sipHost' | 'sipPort'> & {
  readonly logLevel: string;
  readonly nodeId: string;
};

export type SandboxThreadHooks = {
  /** The thread ended without being asked to. */
  readonly onExit?: (error: Error | undefined) => void;
  /** Of the process, for what the thread logs. */
  readonly logger?: Logger;
};

/** What the thread says first. */
export type SandboxListening = { readonly host: string; readonly port: number };

export type SandboxThread = SandboxListening & AsyncDisposable & { close(): Promise<void> };

/** The BYEs of a clean stop take up to a second; a thread that takes longer than this is ended. */
const stopTimeoutMs = 5_000;

/** @throws Error when it cannot listen, or its recordings are missing. */
export async function startSandboxThread(
  options: SandboxThreadOptions,
  hooks: SandboxThreadHooks = {},
): Promise<SandboxThread> {
  const worker = spawnWorker(
    siblingModule('./sandbox-worker', import.meta.url),
    options,
    hooks.logger && { logger: hooks.logger, part: 'sandbox' },
  );
  const { host, port } = await listening(worker);
  let closing: Promise<void> | undefined;
  let failure: Error | undefined;
  worker.on('error', (error) => {
    failure = error instanceof Error ? error : new Error(String(error));
  });
  worker.on('exit', () => {
    if (closing === undefined) hooks.onExit?.(failure);
  });
  const close = () => {
    closing ??= stop(worker);
    return closing;
  };
  return { host, port, close, [Symbol.asyncDispose]: close };
}

async function listening(worker: Worker): Promise<SandboxListening> {
  const exited = new AbortController();
  const onExit = () => exited.abort();
  worker.once('exit', onExit);
  try {
    const [message] = (await once(worker, 'message', { signal: exited.signal })) as [
      SandboxListening,
    ];
    return message;
  } catch (error) {
    await worker.terminate();
    throw new Error('the sandbox did not start', { cause: error });
  } finally {
    worker.off('exit', onExit);
  }
}

async function stop(worker: Worker): Promise<void> {
  // An exit before this is no reason to wait for one.
  if (worker.threadId === -1) return;
  const exited = once(worker, 'exit');
  worker.postMessage('stop');
  const timer = setTimeout(() => void worker.terminate(), stopTimeoutMs);
  await exited;
  clearTimeout(timer);
}
