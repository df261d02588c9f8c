// The SIP engine thread's entry file. It receives its options as worker data, starts the engine,
// and posts the addresses where it's listening. A `stop` message stops the engine.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { inBackground } from '../../lib/in-background.ts';
import { createLogger } from '../../lib/logger.ts';
import { startSipEngine } from './engine.ts';
import type {
  EngineThreadCommand,
  EngineThreadMessage,
  EngineThreadOptions,
} from './engine-thread.ts';

async function run(options: EngineThreadOptions): Promise<void> {
  const { logLevel, nodeId = 'sip-engine', ...engineOptions } = options;
  const logger = createLogger({ level: logLevel, nodeId, part: 'sip-engine' });
  const engine = await startSipEngine({ ...engineOptions, logger });
  const post = (message: EngineThreadMessage): void => parentPort?.postMessage(message);
  parentPort?.on('message', (message: EngineThreadCommand) => {
    if (message.kind === 'statistics') {
      post({ kind: 'statistics', statistics: engine.statistics() });
      return;
    }
    if (message.kind === 'tls') {
      post({ kind: 'tls', ...problemOf(() => engine.useTls(message.table)) });
      return;
    }
    // The thread stays alive until both the engine and the port are closed.
    const closed = engine.close().finally(() => parentPort?.close());
    inBackground(closed, logger, 'closing the SIP engine');
  });
  const { sipHost, sipPort, controlHost, controlPort } = engine;
  post({ kind: 'listening', sipHost, sipPort, controlHost, controlPort });
}

function problemOf(work: () => void): { readonly problem?: string } {
  try {
    work();
    return {};
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

if (!isMainThread) await run(workerData as EngineThreadOptions);
