// A port that is free on UDP and TCP right now: for what must be started again on the same port.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

export async function freeUdpPort(): Promise<number> {
  const tcp = createServer().listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const { port } = tcp.address() as { port: number };
  const udp = createSocket('udp4');
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');
  await Promise.all([
    new Promise((resolve) => tcp.close(resolve)),
    new Promise<void>((resolve) => udp.close(resolve)),
  ]);
  return port;
}
