// The SIP engine thread's entry file. It receives its options as worker data, starts the engine,
// and posts the addresses where it's listening. A `stop` message stops the engine.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { inBackground } from '../../lib/in-background.ts';
import { createLogger } from '../../lib/logger.ts';
import { startSipEngine } from './engine.ts';
import type { EngineThreadMessage, EngineThreadOptions } from './engine-thread.ts';

async function run(options: EngineThreadOptions): Promise<void> {
  const { logLevel, nodeId = 'sip-engine', ...engineOptions } = options;
  const logger = createLogger({ level: logLevel, nodeId, part: 'sip-engine' });
  const engine = await startSipEngine({ ...engineOptions, logger });
  const post = (message: EngineThreadMessage): void => parentPort?.postMessage(message);
  parentPort?.on('message', (message: { readonly kind: 'stop' | 'statistics' }) => {
    if (message.kind === 'statistics') {
      post({ kind: 'statistics', statistics: engine.statistics() });
      return;
    }
    // The thread stays alive until both the engine and the port are closed.
    const closed = engine.close().finally(() => parentPort?.close());
    inBackground(closed, logger, 'closing the SIP engine');
  });
  const { sipHost, sipPort, controlHost, controlPort } = engine;
  post({ kind: 'listening', sipHost, sipPort, controlHost, controlPort });
}

if (!isMainThread) await run(workerData as EngineThreadOptions);
