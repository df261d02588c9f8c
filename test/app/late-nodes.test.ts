// The ways on which a question reaches a late process, over real HTTP servers and a real
// nats-server.

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { deliverOver, reachableUrls } from '../../src/app/late-nodes.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { serveAliveQuestions } from '../../src/events/node-requests.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import {
  type Answerer,
  createAnswerer,
  createQuestion,
  newQuestionKey,
} from '../../src/recovery/alive-question.ts';
import { startHarness } from '../api/support.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';

const nats = forSuite(startTestNats);
const noNats = { prefix: 'test', connected: () => false } as EventConnection;
const late = { ownerId: 'gw.example.com/a b', questionKey: newQuestionKey() };
const answer = createAnswerer(late, () => true);
const ofRestarted = createAnswerer({ ...late, questionKey: newQuestionKey() }, () => true);
/** Longer than the test may take. Only a hung process lets the question wait that long. */
const longMs = 600_000;

async function serveHttp(isAlive: Answerer): Promise<string> {
  const { server } = await startHarness({}, [], { isAlive });
  await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  return `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
}

/** Serves TCP with a program that isn't a gateway, and returns its URL. */
async function serveTcp(response: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (response !== '') socket.end(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serveNats(answerer: Answerer): Promise<EventConnection> {
  const connection = await nats.connect();
  const server = serveAliveQuestions(connection, late.ownerId, answerer, silentLogger);
  onTestFinished(() => server.stop());
  await connection.nats.flush();
  return connection;
}

async function closedUrl(): Promise<string> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
}

const ask = async (connection: EventConnection, urls: readonly string[], timeoutMs = longMs) =>
  await deliverOver(connection)({ ...late, urls }, createQuestion(late, 'life'), timeoutMs);

test('a process is alive if it answers over HTTP, while NATS is away', async () => {
  const urls = [await serveTcp(''), await closedUrl(), await serveHttp(answer)];

  expect(await ask(noNats, urls)).toBe('alive');
});

test('a process is alive if it answers over NATS, whatever listens at its address', async () => {
  const connection = await serveNats(answer);
  const urls = [await serveTcp(''), await serveHttp(ofRestarted)];

  expect(await ask(connection, urls)).toBe('alive');
  expect(await ask(connection, [])).toBe('alive');
});

test('a process that was restarted at the same address does not count, over HTTP or NATS', async () => {
  const connection = await serveNats(ofRestarted);

  expect(await ask(connection, [await serveHttp(ofRestarted)])).toBeUndefined();
});

test.each([
  ['nothing', ''],
  ['another page', 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>'],
  ['a lot', `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${'x'.repeat(2_000_000)}`],
  ['another protocol', 'SSH-2.0-OpenSSH\r\n'],
])('a program that answers with %s is not the process', async (_, response) => {
  expect(await ask(noNats, [await serveTcp(response)], 200)).toBeUndefined();
});

test('a process that is gone is known at once: its port is closed and it left NATS', async () => {
  const connection = await nats.connect();

  expect(await ask(connection, [await closedUrl()])).toBeUndefined();
  expect(await ask(noNats, [])).toBeUndefined();
});

test('a stranger gets the response of an address that does not exist', async () => {
  const { server } = await startHarness({}, [], { isAlive: answer });
  onTestFinished(() => server.close());
  const post = async (url: string, payload: object) => {
    const { statusCode, json } = await server.inject({ method: 'POST', url, payload });
    const { requestId, ...problem } = json<{ readonly requestId: string }>();
    return { statusCode, problem };
  };
  const guess = createQuestion({ ...late, questionKey: newQuestionKey() }, 'yield').body;

  for (const payload of [{}, { ownerId: late.ownerId }, guess]) {
    expect(await post('/node/alive', payload)).toEqual(await post('/nothing-here', payload));
  }
});

test('a node announces the address it listens on, or all addresses of its machine', () => {
  const at = (address: string, family: 'IPv4' | 'IPv6', internal = false) => ({
    ...{ address, family, internal, netmask: '', mac: '', cidr: null, scopeid: 0 },
  });
  const interfaces = {
    lo: [at('127.0.0.1', 'IPv4', true), at('::1', 'IPv6', true)],
    eth0: [at('10.0.0.4', 'IPv4'), at('2001:db8::4', 'IPv6'), at('fe80::1', 'IPv6')],
  } as unknown as Parameters<typeof reachableUrls>[2];

  expect(reachableUrls('10.0.0.9', 3000, interfaces)).toEqual(['http://10.0.0.9:3000']);
  expect(reachableUrls('::1', 3000, interfaces)).toEqual(['http://[::1]:3000']);
  expect(reachableUrls('0.0.0.0', 3000, interfaces)).toEqual([
    'http://10.0.0.4:3000',
    'http://127.0.0.1:3000',
  ]);
  expect(reachableUrls('::', 3000, interfaces)).toEqual([
    'http://10.0.0.4:3000',
    'http://[2001:db8::4]:3000',
    'http://127.0.0.1:3000',
    'http://[::1]:3000',
  ]);
});
