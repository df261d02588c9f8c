// A thread that records one call, faster than real time, until it's terminated. It gets the port to
// the recording thread as its only message.

import { type MessagePort, parentPort } from 'node:worker_threads';
import { RecorderLink } from '../../../src/recording/audio/recorder-link.ts';
import { startOf } from './recorded-session.ts';

const frame = new Uint8Array(160).fill(1);

parentPort?.once('message', (port: MessagePort) => {
  const link = new RecorderLink();
  link.connect(port);
  const recorder = link.create(startOf(), 0, () => undefined);
  setInterval(() => {
    for (let tick = 0; tick < 10; tick += 1) {
      recorder.hear(frame);
      recorder.tick();
      link.tick();
    }
  }, 5);
});
