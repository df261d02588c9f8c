import { createSocket, type Socket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { afterEach, expect, test } from 'vitest';
import { createHostResolver } from '../../src/lib/host-resolver.ts';

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

/**
 * Answers every A query with this address, and every other query with an empty answer. Without an
 * address, it never answers.
 */
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

test('asks the name servers for a name', async () => {
  const nameServer = await startNameServer([93, 184, 215, 14]);

  expect(await resolve('hooks.example', nameServer)).toEqual([
    { address: '93.184.215.14', family: 4 },
  ]);
});

test('asks only the system for localhost', async () => {
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

test('gives up on a name server that does not answer', async () => {
  expect(await resolve('slow.example', await startNameServer())).toBe('ETIMEOUT');
});

test('asks the system for at most two names at once, whenever the next one arrives', async () => {
  const asked: (() => void)[] = [];
  let running = 0;
  let most = 0;
  const resolveName = createHostResolver([], async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise<void>((answered) => asked.push(answered));
    running -= 1;
    return [{ address: '127.0.0.1', family: 4 }];
  });
  const names = ['a.localhost', 'b.localhost', 'c.localhost'].map((name) => resolveName(name));

  asked.shift()?.();
  // One name arrives at each step between the answer and the turn of the next waiting name.
  for (let step = 0; step < 20; step += 1) {
    names.push(resolveName(`${step}.localhost`));
    await Promise.resolve();
  }
  let answered = 1;
  while (answered < names.length) {
    const answer = asked.shift();
    answered += answer === undefined ? 0 : 1;
    answer?.();
    await new Promise(setImmediate);
  }

  expect(await Promise.all(names)).toHaveLength(23);
  expect(most).toBe(2);
});
