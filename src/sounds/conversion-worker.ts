// A worker thread that converts one file after another, so that long conversions don't block calls.

import { parentPort } from 'node:worker_threads';
import { convert } from './conversion.ts';

parentPort?.on('message', (file: Uint8Array) => {
  const converted = convert(Buffer.from(file.buffer, file.byteOffset, file.byteLength));
  if (converted.ok) parentPort?.postMessage(converted, [converted.mulaw.buffer]);
  else parentPort?.postMessage(converted);
});
