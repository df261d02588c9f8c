// A media worker thread: wires the RTP engine of src/media with the detector of src/amd. Started by src/media/media-port.ts.

import { parentPort, workerData } from 'node:worker_threads';
import type { CreateDetector } from './media/detector-port.ts';
import { MediaEngine } from './media/media-engine.ts';
import type { FromMediaWorker, MediaWorkerData, ToMediaWorker } from './media/media-messages.ts';

const port = parentPort;
if (port === null) throw new Error('media-worker runs as a worker thread only');

const data = workerData as MediaWorkerData;
const { createDetector } = await loadDetector(data.detectorModule);
const engine = new MediaEngine(data, createDetector, (message: FromMediaWorker) =>
  port.postMessage(message),
);
port.on('message', (message: ToMediaWorker) => engine.handle(message));
port.postMessage({ kind: 'ready' } satisfies FromMediaWorker);

async function loadDetector(
  moduleUrl: string | undefined,
): Promise<{ createDetector: CreateDetector }> {
  if (moduleUrl === undefined) return import('./amd/detector.ts');
  return (await import(moduleUrl)) as { createDetector: CreateDetector };
}
