// A port that is free on UDP and TCP right now: for what must be started again on the same port. None of those that the system gives
// to every program that asks for any (32,768 on; elsewhere 49,152), which another test may be given a moment later; nor of a gateway's media.

import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

const range = [10_000, 20_000] as const;
/**
 * Who is given a port binds it later, and other processes look for one at the same time. So each port has another that stands for it,
 * on TCP, and that is held for as long as the process lives: nobody else is given the same one. The system lets go of it, however we end.
 */
const claimOffset = 10_000;
/** A few of ten thousand are taken. */
const tries = 100;

export async function freeUdpPort(): Promise<number> {
  for (let count = 0; count < tries; count += 1) {
    const port = randomInt(...range);
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error('no free port');
}

async function claim(port: number): Promise<boolean> {
  const server = createServer().unref();
  try {
    await once(server.listen(port + claimOffset, '127.0.0.1'), 'listening');
    return true;
  } catch {
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const tcp = createServer();
  const udp = createSocket('udp4');
  try {
    await Promise.all([
      once(tcp.listen(port, '127.0.0.1'), 'listening'),
      once(udp.bind(port, '127.0.0.1'), 'listening'),
    ]);
    return true;
  } catch {
    return false;
  } finally {
    await Promise.all([
      new Promise((resolve) => tcp.close(resolve)),
      new Promise<void>((resolve) => udp.close(resolve)),
    ]);
  }
}
