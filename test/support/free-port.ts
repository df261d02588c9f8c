// Ports that are free right now, and given to nobody else: for what must be started again on the same port, for what may be sent to long
// after it is gone, and for the media of a gateway. None of those that the system gives to every program that asks for any (32,768 on;
// elsewhere 49,152), which another test may be given a moment later.

import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const range = [10_000, 20_000] as const;
/**
 * Who is given a port binds it later, and other processes look for one at the same time. So each port has another that stands for it,
 * on TCP, and that is held for as long as the process lives: nobody else is given the same one. The system lets go of it, however we end.
 */
const claimOffset = 10_000;
/** A few of ten thousand are taken. */
const tries = 100;

/**
 * Media is UDP only, so that its ports may be those that stand for others on TCP. Above those that a gateway begins with which was told
 * of no range (20,000), below those that tests give themselves (31,000 on).
 */
const firstMediaPort = 21_000;
const blockPorts = 100;
const blockCount = 100;
/** A block has one port that stands for all of it, on TCP, above those of single ports. */
const firstBlockClaim = 30_000;

/** On UDP and TCP. */
export async function freeUdpPort(): Promise<number> {
  for (let count = 0; count < tries; count += 1) {
    const port = randomInt(...range);
    if ((await claim(port + claimOffset)) !== undefined && (await isFree(port))) return port;
  }
  throw new Error('no free port');
}

/** Nobody else is given any of them until it is disposed of, or the process ends. */
export type PortRange = AsyncDisposable & { readonly portMin: number; readonly portMax: number };

/** So many in a row, on UDP. */
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
      return { portMin, portMax, [Symbol.asyncDispose]: () => letGo(claims) };
    }
    await letGo(claims);
  }
  const last = firstMediaPort + blockCount * blockPorts - 1;
  throw new Error(`no ${size} free UDP ports in a row from ${firstMediaPort} to ${last}`);
}

async function claimBlocks(first: number, count: number): Promise<readonly Server[] | undefined> {
  const claims: Server[] = [];
  for (let block = first; block < first + count; block += 1) {
    const server = await claim(firstBlockClaim + block);
    if (server === undefined) {
      await letGo(claims);
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

async function letGo(claims: readonly Server[]): Promise<void> {
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
    await letGo([tcp]);
  }
}

/** One after the other: the sockets of all of them at once would be many. */
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
