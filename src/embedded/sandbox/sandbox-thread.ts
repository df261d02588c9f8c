// Starts the sandbox in its own worker thread, so that the callees talk as evenly as real people
// even if the gateway's event loop is busy.

import type { Logger } from '../../lib/logger.ts';
import { type RunningThread, whenStarted } from '../../lib/threads/running-thread.ts';
import { siblingModule, spawnWorker } from '../../lib/threads/worker-threads.ts';
import type { SandboxOptions } from './sandbox.ts';
import type { SandboxCallSummary } from './sandbox-call.ts';

export type SandboxThreadOptions = Pick<SandboxOptions, 'sipHost' | 'sipPort'> & {
  readonly logLevel: string;
  readonly nodeId: string;
};

/** The thread's first message, which contains the sandbox's addresses. */
export type SandboxListening = { readonly host: string; readonly port: number };

export type SandboxThread = SandboxListening & RunningThread;

/**
 * Starts the sandbox in a thread.
 *
 * @param logger the process's logger, which receives the thread's log lines
 * @param onCallEnded called at the end of every call
 * @throws Error if the sandbox can't listen, or if a recording is missing
 */
export async function startSandboxThread(
  options: SandboxThreadOptions,
  logger?: Logger,
  onCallEnded: (summary: SandboxCallSummary) => void = () => undefined,
): Promise<SandboxThread> {
  const worker = spawnWorker(
    siblingModule('./sandbox-worker', import.meta.url),
    options,
    logger && { logger, part: 'sandbox' },
  );
  const { first, thread } = await whenStarted<SandboxListening>(worker, {
    name: 'the sandbox',
    stopMessage: 'stop',
  });
  // All messages after the first are call summaries.
  worker.on('message', onCallEnded);
  return { ...first, ...thread };
}
