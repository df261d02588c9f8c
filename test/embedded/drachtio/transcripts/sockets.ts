// The sockets of a replay: srf's end of a control connection, and the far ends' UDP and TCP ports.
// They only do framing and pass what arrives to a callback.

import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket as TcpSocket } from 'node:net';

export type ControlPeer = {
  send(payload: string): void;
  sendRaw(bytes: string): void;
  close(): void;
};

export async function connectControl(
  port: number,
  onPayload: (payload: string) => void,
  onClose: () => void,
): Promise<ControlPeer> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.on('close', onClose);
  let buffered = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    buffered = Buffer.concat([buffered, chunk]);
    for (;;) {
      const hash = buffered.indexOf('#');
      if (hash === -1) return;
      const end = hash + 1 + Number(buffered.toString('latin1', 0, hash));
      if (buffered.length < end) return;
      const payload = buffered.toString('utf8', hash + 1, end);
      buffered = buffered.subarray(end);
      onPayload(payload);
    }
  });
  await once(socket, 'connect');
  return {
    send: (payload) => socket.write(`${Buffer.byteLength(payload)}#${payload}`),
    sendRaw: (bytes) => socket.write(bytes),
    close: () => socket.destroy(),
  };
}

export type WirePeer = {
  readonly port: number;
  send(message: string | Buffer, toPort: number): void;
  close(): Promise<void>;
};

export async function openUdpPeer(onText: (text: string) => void): Promise<WirePeer> {
  const socket: UdpSocket = createSocket('udp4');
  socket.on('message', (message) => onText(message.toString('utf8')));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    port: socket.address().port,
    send: (message, toPort) => socket.send(message, toPort, '127.0.0.1'),
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

/**
 * Opens a far end on TCP. The engine connects to it. It sends on the connection that the engine
 * opened last.
 */
export async function openTcpPeer(onText: (text: string) => void): Promise<WirePeer> {
  const connections: TcpSocket[] = [];
  const server: Server = createServer((socket) => {
    connections.push(socket);
    socket.on('error', () => undefined);
    let buffered = '';
    socket.on('data', (chunk) => {
      buffered += chunk.toString('utf8');
      for (let end = messageEnd(buffered); end !== undefined; end = messageEnd(buffered)) {
        onText(buffered.slice(0, end));
        buffered = buffered.slice(end);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    send: (message) => connections.at(-1)?.write(message),
    close: async () => {
      for (const socket of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function messageEnd(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return undefined;
  const length = Number(/\r\nContent-Length:\s*(\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  return text.length >= head + 4 + length ? head + 4 + length : undefined;
}

/** Returns a port without a listener. It was in use a moment ago. */
export async function closedPort(): Promise<number> {
  const peer = await openTcpPeer(() => undefined);
  await peer.close();
  return peer.port;
}
