// A thread with a server that responds with 200 until its gate is set. From then on it stands
// still, so it doesn't accept connections or read anything.

import { createServer } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

const gate = new Int32Array(workerData);
const server = createServer((request, response) => {
  request.resume().once('end', () => response.writeHead(200).end());
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort?.postMessage(server.address().port);
});
setInterval(() => {
  // Wait forever: only `terminate` ends this thread.
  if (Atomics.load(gate, 0) === 1) Atomics.wait(gate, 0, 1);
}, 5);
