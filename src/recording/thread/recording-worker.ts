// The entry file of the recording thread, which src/recording/recording-thread.ts starts.

import { parentPort, workerData } from 'node:worker_threads';
import { crash, Recordings } from './recordings.ts';
import type {
  FromThread,
  RecordingThreadData,
  ThreadRequest,
  ToThread,
} from './thread-messages.ts';

const port = parentPort;
if (port === null) throw new Error('recording-worker runs as a worker thread only');

const { spool, ownerId } = workerData as RecordingThreadData;
const post = (message: FromThread): void => port.postMessage(message);
const recordings = new Recordings(spool, ownerId, {
  onFinished: (spooled) => post({ kind: 'finished', spooled }),
  onFault: (callId, fault, detail) => post({ kind: 'fault', callId, fault, detail }),
});

port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'port':
      recordings.connect(message.port);
      return;
    case 'request':
      answer(message.id, message.request).catch(crash);
      return;
    case 'stop':
      recordings
        .stop()
        .finally(() => process.exit(0))
        .catch(crash);
  }
});

async function answer(id: number, request: ThreadRequest): Promise<void> {
  try {
    post({ kind: 'answer', id, answer: await run(request) });
  } catch (error) {
    post({ kind: 'error', id, message: String(error) });
  }
}

async function run(request: ThreadRequest): Promise<unknown> {
  switch (request.kind) {
    case 'leftovers':
      return recordings.leftovers();
    case 'finish':
      return await recordings.finish(request.folder, request.contentKey);
    case 'remove':
      recordings.remove(request.folder);
      return undefined;
  }
}
