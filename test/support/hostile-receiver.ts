// Receivers that delay a sender, by malice or by accident. They respond correctly until `turn()`.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';

export type HostileReceiver = {
  readonly manner: Manner;
  readonly url: string;
  /** Makes the receiver misbehave from now on. */
  readonly turn: () => void;
  /** Number of requests that the receiver has read. NaN for `never accepts`. */
  readonly asked: () => number;
  /** Number of connections that are open now. NaN for `never accepts`. */
  readonly sockets: () => number;
  /** Number of connections since the start. NaN for `never accepts`. */
  readonly connections: () => number;
  readonly close: () => Promise<void>;
};

const dripEveryMs = 400;
const pourEveryMs = 20;
/** Far below an attempt's time-out, but far longer than a good receiver would take. */
const lateMs = 8_000;

const manners = {
  'drips a body': (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': 50_000 });
    every(dripEveryMs, response, () => response.write('x'));
  },
  'drips a head': (response: ServerResponse) => {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\nx-dripped: ');
    every(dripEveryMs, response, () => socket?.write('x'));
  },
  'never answers': () => undefined,
  resets: (response: ServerResponse) => response.socket?.resetAndDestroy(),
  'resets within a body': (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': 50_000 });
    response.write('x', () => response.socket?.resetAndDestroy());
  },
  'answers late': (response: ServerResponse) => {
    setTimeout(() => response.writeHead(200).end(), lateMs).unref();
  },
  'answers at length': (response: ServerResponse) => {
    response.writeHead(200);
    every(pourEveryMs, response, () => response.write(Buffer.alloc(16 * 1024)));
  },
} satisfies Readonly<Record<string, (response: ServerResponse) => unknown>>;

export type Manner = keyof typeof manners | 'never accepts';

function every(intervalMs: number, response: ServerResponse, write: () => void): void {
  const timer = setInterval(write, intervalMs);
  response.once('close', () => clearInterval(timer));
  write();
}

export async function startHostileReceiver(manner: Manner): Promise<HostileReceiver> {
  if (manner === 'never accepts') return await startDeaf();
  let isTurned = false;
  let asked = 0;
  let sockets = 0;
  let connections = 0;
  const server = createServer((request, response) => {
    asked += 1;
    request.resume().once('end', () => {
      if (isTurned) manners[manner](response);
      else response.writeHead(200).end();
    });
  });
  server.on('connection', (socket) => {
    sockets += 1;
    connections += 1;
    socket.once('close', () => {
      sockets -= 1;
    });
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    manner,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    turn: () => {
      isTurned = true;
    },
    asked: () => asked,
    sockets: () => sockets,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Starts a thread that can stand still. When it does, the system accepts one or two more
 * connections that nobody reads, then drops any further attempts.
 */
async function startDeaf(): Promise<HostileReceiver> {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL('./deaf-receiver.mjs', import.meta.url), {
    workerData: gate.buffer,
  });
  const port = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  return {
    manner: 'never accepts',
    url: `http://127.0.0.1:${port}/`,
    turn: () => void Atomics.store(gate, 0, 1),
    asked: () => Number.NaN,
    sockets: () => Number.NaN,
    connections: () => Number.NaN,
    close: async () => void (await worker.terminate()),
  };
}
