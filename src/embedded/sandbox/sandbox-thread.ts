// The sandbox beside the gateway's loop, in a worker thread of its own: its callees keep speaking evenly while the gateway
// is busy, as people do.

import type { Logger } from '../../lib/logger.ts';
import { type RunningThread, whenStarted } from '../../lib/threads/running-thread.ts';
import { siblingModule, spawnWorker } from '../../lib/threads/worker-threads.ts';
import type { SandboxOptions } from './sandbox.ts';
import type { SandboxCallSummary } from './sandbox-call.ts';

export type SandboxThreadOptions = Pick<SandboxOptions, 'sipHost' | 'sipPort'> & {
  readonly logLevel: string;
  readonly nodeId: string;
};

/** What the thread says first. */
export type SandboxListening = { readonly host: string; readonly port: number };

export type SandboxThread = SandboxListening & RunningThread;

/** `logger`: of the process, for what the thread logs. `onCallEnded`: told of every call's end. @throws Error when it cannot listen, or its recordings are missing. */
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
  // Every message after the first is one.
  worker.on('message', onCallEnded);
  return { ...first, ...thread };
}
