// The entry file of a media worker thread, which src/media/media-port.ts starts. It connects the
// RTP engine (src/media) to the detector (src/amd), the bot streams (src/streams) and the recorders
// (src/recording).

import { parentPort, workerData } from 'node:worker_threads';
import type { SpeechToText } from '../amd/stt/transcribed-detector.ts';
import { createAddressGuard } from '../lib/address-guard.ts';
import type { CreateDetector } from '../media/detector-port.ts';
import { MediaEngine } from '../media/media-engine.ts';
import type { FromMediaWorker, MediaWorkerData, ToMediaWorker } from '../media/media-messages.ts';
import { RecorderLink } from '../recording/audio/recorder-link.ts';
import { type BotStreamDependencies, CallStream } from '../streams/bot-stream.ts';

const port = parentPort;
if (port === null) throw new Error('media-worker runs as a worker thread only');

const data = workerData as MediaWorkerData;
const post = (message: FromMediaWorker): void => port.postMessage(message);
const streams: BotStreamDependencies = {
  guard: createAddressGuard(data.streams.allowedNetworks),
  nowMs: () => performance.now(),
  wallClockMs: () => Date.now(),
};
const engine = new MediaEngine(
  data,
  {
    createDetector: await loadDetector(data),
    createStream: (settings, queue, sink) => new CallStream(settings, queue, sink, streams),
    recorders: new RecorderLink(),
  },
  post,
);
port.on('message', (message: ToMediaWorker) => engine.handle(message));
post({ kind: 'ready' });

async function loadDetector({ detectorModule, detectorData }: MediaWorkerData) {
  if (detectorModule !== undefined) {
    const other = (await import(detectorModule)) as { createDetector: CreateDetector };
    return other.createDetector;
  }
  const { createDetector } = await import('../amd/detector.ts');
  const { createTranscribedDetector } = await import('../amd/stt/transcribed-detector.ts');
  // See `openMedia` in src/app/app.ts.
  const speechToText = (detectorData as SpeechToText | undefined) ?? { providers: new Map() };
  return createTranscribedDetector({
    createDetector,
    speechToText,
    onFailed: (report) => post({ kind: 'transcriptionFailed', ...report }),
  });
}
