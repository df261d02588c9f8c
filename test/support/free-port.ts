// Finds free ports that no other test gets. We need them for servers that restart on the same port,
// for ports that may receive packets long after their owner is gone, and for a gateway's media. We
// avoid the system's ephemeral ports (32,768 and up, or 49,152 and up on some systems), because any
// program might grab one of those a moment later.

import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const range = [10_000, 20_000] as const;
/**
 * A test binds its port later, and meanwhile other processes may be looking for ports too. So we
 * claim each port by listening on a second TCP port that stands for it. The system releases the
 * claim no matter how the process ends.
 */
const claimOffset = 10_000;
/** Plenty, because only a few of the ten thousand ports are taken. */
const tries = 100;

/**
 * First of the media ports. Media uses UDP only, so media ports may overlap with the claims on TCP.
 * The range is above the default start of a gateway (20,000) and below the ports that tests choose
 * themselves (31,000 and up).
 */
const firstMediaPort = 21_000;
const blockPorts = 100;
const blockCount = 100;
/** One TCP port claims a whole block. These claims are above those of single ports. */
const firstBlockClaim = 30_000;

/** Returns a port that is free on UDP and TCP. */
export async function freeUdpPort(): Promise<number> {
  for (let count = 0; count < tries; count += 1) {
    const port = randomInt(...range);
    if ((await claim(port + claimOffset)) !== undefined && (await isFree(port))) return port;
  }
  throw new Error('no free port');
}

/** Returns a port that is free on UDP and TCP, as is the one after it. */
export async function freePortPair(): Promise<number> {
  for (let count = 0; count < tries; count += 1) {
    const port = await freeUdpPort();
    if ((await claim(port + 1 + claimOffset)) !== undefined && (await isFree(port + 1))) {
      return port;
    }
  }
  throw new Error('no two free ports in a row');
}

/** A range of ports that is ours until we dispose of it or the process ends. */
export type PortRange = AsyncDisposable & { readonly portMin: number; readonly portMax: number };

/** Returns `size` consecutive UDP ports. */
export async function freePortRange(size: number): Promise<PortRange> {
  const blocksEach = Math.ceil(size / blockPorts);
  const places = Math.floor(blockCount / blocksEach);
  const start = places === 0 ? 0 : randomInt(places);
  for (let count = 0; count < places; count += 1) {
    const firstBlock = ((start + count) % places) * blocksEach;
    const claims = await claimBlocks(firstBlock, blocksEach);
    if (claims === undefined) continue;
    const portMin = firstMediaPort + firstBlock * blockPorts;
    const portMax = portMin + size - 1;
    if (await areFree(portMin, portMax)) {
      return { portMin, portMax, [Symbol.asyncDispose]: () => release(claims) };
    }
    await release(claims);
  }
  const last = firstMediaPort + blockCount * blockPorts - 1;
  throw new Error(`no ${size} free UDP ports in a row from ${firstMediaPort} to ${last}`);
}

async function claimBlocks(first: number, count: number): Promise<readonly Server[] | undefined> {
  const claims: Server[] = [];
  for (let block = first; block < first + count; block += 1) {
    const server = await claim(firstBlockClaim + block);
    if (server === undefined) {
      await release(claims);
      return undefined;
    }
    claims.push(server);
  }
  return claims;
}

async function claim(port: number): Promise<Server | undefined> {
  const server = createServer().unref();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return server;
  } catch {
    return undefined;
  }
}

async function release(claims: readonly Server[]): Promise<void> {
  await Promise.all(claims.map((server) => new Promise((resolve) => server.close(resolve))));
}

async function isFree(port: number): Promise<boolean> {
  const tcp = createServer();
  try {
    const [isFreeOnUdp] = await Promise.all([
      isUdpFree(port),
      once(tcp.listen(port, '127.0.0.1'), 'listening'),
    ]);
    return isFreeOnUdp;
  } catch {
    return false;
  } finally {
    await release([tcp]);
  }
}

/** Checks one port at a time, because checking them all at once would open too many sockets. */
async function areFree(portMin: number, portMax: number): Promise<boolean> {
  for (let port = portMin; port <= portMax; port += 1) if (!(await isUdpFree(port))) return false;
  return true;
}

async function isUdpFree(port: number): Promise<boolean> {
  const udp = createSocket('udp4');
  try {
    await once(udp.bind(port, '127.0.0.1'), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    await new Promise<void>((resolve) => udp.close(resolve));
  }
}
