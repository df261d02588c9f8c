// The sandbox thread's entry file. It receives its options as worker data, starts the sandbox, and
// posts the addresses where it's listening. Any message to the thread stops the sandbox.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { inBackground } from '../../lib/in-background.ts';
import { createLogger } from '../../lib/logger.ts';
import { startSandbox } from './sandbox.ts';
import type { SandboxListening, SandboxThreadOptions } from './sandbox-thread.ts';

async function run({ logLevel, nodeId, ...options }: SandboxThreadOptions): Promise<void> {
  const logger = createLogger({ level: logLevel, nodeId, part: 'sandbox' });
  const sandbox = await startSandbox({
    ...options,
    logger,
    onCallEnded: (summary) => parentPort?.postMessage(summary),
  });
  parentPort?.once('message', () => {
    // The thread stays alive until both the sandbox and the port are closed.
    const closed = sandbox.close().finally(() => parentPort?.close());
    inBackground(closed, logger, 'closing the sandbox');
  });
  const listening: SandboxListening = { host: sandbox.host, port: sandbox.port };
  parentPort?.postMessage(listening);
}

if (!isMainThread) await run(workerData as SandboxThreadOptions);
