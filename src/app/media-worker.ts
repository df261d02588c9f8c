// A media worker thread: wires the RTP engine of src/media with the detector of src/amd. Started by src/media/media-port.ts.

import { parentPort, workerData } from 'node:worker_threads';
import type { SpeechToText } from '../amd/stt/transcribed-detector.ts';
import type { CreateDetector } from '../media/detector-port.ts';
import { MediaEngine } from '../media/media-engine.ts';
import type { FromMediaWorker, MediaWorkerData, ToMediaWorker } from '../media/media-messages.ts';

const port = parentPort;
if (port === null) throw new Error('media-worker runs as a worker thread only');

const data = workerData as MediaWorkerData;
const post = (message: FromMediaWorker): void => port.postMessage(message);
const engine = new MediaEngine(data, await loadDetector(data), post);
port.on('message', (message: ToMediaWorker) => engine.handle(message));
post({ kind: 'ready' });

async function loadDetector({ detectorModule, detectorData }: MediaWorkerData) {
  if (detectorModule !== undefined) {
    const other = (await import(detectorModule)) as { createDetector: CreateDetector };
    return other.createDetector;
  }
  const { createDetector } = await import('../amd/detector.ts');
  const { createTranscribedDetector } = await import('../amd/stt/transcribed-detector.ts');
  // As src/app/media.ts hands it in.
  const speechToText = (detectorData as SpeechToText | undefined) ?? { providers: new Map() };
  return createTranscribedDetector({
    createDetector,
    speechToText,
    onFailed: (report) => post({ kind: 'transcriptionFailed', ...report }),
  });
}
