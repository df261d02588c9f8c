// Posts a message that it rests, rests for longer than any test lasts, and sends every message
// back.

import { parentPort, workerData } from 'node:worker_threads';
import { type RestMemory, ThreadRest } from '../../../../src/lib/threads/thread-rest.ts';

const rest = new ThreadRest(workerData as RestMemory);
parentPort?.on('message', (message) => parentPort?.postMessage(message));
parentPort?.postMessage('rests');
setImmediate(() => rest.rest(600_000));
