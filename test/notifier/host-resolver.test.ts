import { createSocket, type Socket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { afterEach, expect, test } from 'vitest';
import { createHostResolver } from '../../src/notifier/host-resolver.ts';

const servers: Socket[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function resolve(
  hostname: string,
  nameServer: string,
): Promise<readonly LookupAddress[] | string> {
  try {
    return await createHostResolver([nameServer])(hostname);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

/** Answers every A query with this address, every other with an empty answer; without an address: never. */
async function startNameServer(address?: readonly number[]): Promise<string> {
  const server = createSocket('udp4');
  servers.push(server);
  server.on('message', (query, peer) => {
    if (address === undefined) return;
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const isA = question.readUInt16BE(question.length - 4) === 1;
    const header = Buffer.from([
      query[0] ?? 0,
      query[1] ?? 0,
      0x81,
      0x80,
      0,
      1,
      0,
      isA ? 1 : 0,
      0,
      0,
      0,
      0,
    ]);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address]);
    server.send(
      Buffer.concat([header, question, ...(isA ? [answer] : [])]),
      peer.port,
      peer.address,
    );
  });
  await new Promise<void>((bound) => server.bind(0, '127.0.0.1', bound));
  return `127.0.0.1:${server.address().port}`;
}

test('a name is asked of the name servers', async () => {
  const nameServer = await startNameServer([93, 184, 215, 14]);

  expect(await resolve('hooks.example', nameServer)).toEqual([
    { address: '93.184.215.14', family: 4 },
  ]);
});

test('localhost is asked of the system alone', async () => {
  const nameServer = await startNameServer([93, 184, 215, 14]);

  for (const name of ['localhost', 'LOCALHOST.']) {
    const addresses = await resolve(name, nameServer);
    expect(addresses).not.toContainEqual({ address: '93.184.215.14', family: 4 });
  }
  expect(await resolve('localhost', nameServer)).toContainEqual({
    address: '127.0.0.1',
    family: 4,
  });
});

test('a name server that does not answer is given up on', async () => {
  expect(await resolve('slow.example', await startNameServer())).toBe('ETIMEOUT');
});
