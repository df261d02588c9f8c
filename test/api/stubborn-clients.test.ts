// Clients that send too slowly, break off, send bytes that are not HTTP, or do not read: their
// answers, the metrics and the log. None of them delays the close of the server.

import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { ApiServerOptions } from '../../src/api/server.ts';
import { eventually } from '../support/eventually.ts';
import { recordedLogger } from '../support/recorded-logger.ts';
import { dialoutPath, minimal, startHarness, token } from './support.ts';

const route = '/api/1.1/public/bot/:botId/V2/contactcenter/dialout';
const twilioRoute = '/2010-04-01/Accounts/:accountSid/Calls/:callSid.json';

async function listening(options: Partial<ApiServerOptions> = {}) {
  const { logger, lines } = recordedLogger('debug');
  const harness = await startHarness({}, [], { logger, ...options });
  let asked = 0;
  harness.server.addHook('preParsing', async () => {
    asked += 1;
  });
  onTestFinished(() => harness[Symbol.asyncDispose]());
  const { port } = new URL(await harness.server.listen({ host: '127.0.0.1', port: 0 }));
  const head = [
    `POST ${dialoutPath} HTTP/1.1`,
    'host: offhook',
    `auth: ${await token()}`,
    'content-type: application/json',
  ];
  return {
    harness,
    /** The lines that would alert an operator. */
    complaints: () => lines.filter(({ level }) => Number(level) >= 50),
    client: () => openClient(Number(port)),
    /** Waits until a request is authenticated and the server waits for its body. */
    isAsked: () => eventually(() => asked > 0, 'a request is in'),
    request: (...more: readonly string[]) => `${[...head, ...more].join('\r\n')}\r\n\r\n`,
    countOf: async (status: number, of = route) => {
      const { body } = await harness.server.inject('/metrics');
      const labels = `method="POST",route="${of}",status="${status}"`;
      const [, count = '0'] =
        new RegExp(`duration_seconds_count\\{${labels}\\} (\\d+)`).exec(
          body.replaceAll('\\', ''),
        ) ?? [];
      return Number(count);
    },
  };
}

/** A client that keeps sending after the server has ended the connection, until it is cut off. */
async function openClient(port: number) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  // A connection that is cut while the client sends is reset.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const ended = new Promise((resolve) => socket.once('end', resolve));
  await new Promise((resolve) => socket.once('connect', resolve));
  let received = '';
  return {
    ...{ socket, closed, ended },
    received: () => received,
    read: () => socket.setEncoding('utf8').on('data', (text: string) => (received += text)),
  };
}

function drip(socket: Socket, text = ' '): void {
  const timer = setInterval(() => socket.writable && socket.write(text), 20);
  socket.once('close', () => clearInterval(timer));
}

test('a body that arrives too slowly is answered and counted as a 408, and logs no error', async () => {
  const { harness, client, request, countOf, complaints } = await listening({
    requestTimeoutMs: 300,
  });
  const { socket, closed, received, read } = await client();
  read();
  socket.write(`${request('content-length: 100000')}{`);
  drip(socket);
  await closed;

  expect(received()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
  expect(received().match(/HTTP\/1\.1/g)).toHaveLength(1);
  await eventually(async () => (await countOf(408)) === 1, 'it is counted');
  expect(harness.submissions).toEqual([]);
  expect(complaints()).toEqual([]);
});

test('a body whose rest arrives after the 408 places no call', async () => {
  const { harness, client, request, countOf } = await listening({ requestTimeoutMs: 300 });
  const { socket, received, read } = await client();
  read();
  const body = JSON.stringify(minimal);
  socket.write(request(`content-length: ${body.length}`));
  socket.write(body.slice(0, 10));
  await eventually(() => received().includes('408'), 'it is refused');
  socket.write(body.slice(10));

  await eventually(async () => (await countOf(408)) === 1, 'the request is over');
  expect(harness.submissions).toEqual([]);
});

test.each([
  ['breaks off', (socket: Socket) => void socket.destroy()],
  ['is reset', (socket: Socket) => void socket.resetAndDestroy()],
  ['is not what was announced', (socket: Socket) => void socket.write('zz\r\n')],
])('a body that %s is a 400, and logs no error', async (_name, end) => {
  const { client, request, countOf, complaints, isAsked } = await listening();
  const { socket } = await client();
  socket.write(`${request('transfer-encoding: chunked')}1\r\n{\r\n`);
  await isAsked();
  end(socket);

  await eventually(async () => (await countOf(400)) === 1, 'it is counted');
  expect(complaints()).toEqual([]);
});

const twilioPath = `/2010-04-01/Accounts/AC${'1'.repeat(32)}/Calls/CA${'2'.repeat(32)}.json`;

test.each([
  ['comes too slowly', 408, (socket: Socket) => drip(socket)],
  ['breaks off', 400, (socket: Socket) => void socket.destroy()],
])(
  "a form in Twilio's requests that %s is counted with its status, and logs no error",
  async (_name, status, go) => {
    const { client, countOf, complaints, isAsked } = await listening({ requestTimeoutMs: 300 });
    const { socket, read } = await client();
    read();
    const type = 'content-type: application/x-www-form-urlencoded';
    const head = [`POST ${twilioPath} HTTP/1.1`, 'host: offhook', type, 'content-length: 1000'];
    socket.write(`${head.join('\r\n')}\r\n\r\nS`);
    await isAsked();
    go(socket);

    await eventually(async () => (await countOf(status, twilioRoute)) === 1, 'it is counted');
    expect(complaints()).toEqual([]);
  },
);

test('bytes that are not HTTP log no error', async () => {
  const { client, complaints } = await listening();
  for (const text of ['rubbish\r\n\r\n', `GET / HTTP/1.1\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`]) {
    const { socket, ended, read, received } = await client();
    read();
    socket.write(text);
    await ended;
    expect(received()).toMatch(/^HTTP\/1\.1 4/);
  }
  expect(complaints()).toEqual([]);
});

test('no client delays the close, and requests during the close are refused', async () => {
  const { harness, client, request, isAsked } = await listening();
  // This client sends no request.
  await client();
  const dripping = await client();
  dripping.socket.write(`${request('content-length: 100000')}{`);
  drip(dripping.socket);
  await isAsked();
  // The answers are far larger than the buffers of a connection.
  const unread = await client();
  unread.socket.pause();
  unread.socket.write('GET /openapi.json HTTP/1.1\r\nhost: offhook\r\n\r\n'.repeat(100));
  const malformed = await client();
  malformed.socket.write('rubbish\r\n\r\n');
  // Sends its second request while the server closes.
  const late = await client();
  late.read();
  late.socket.write('GET /live HTTP/1.1\r\nhost: offhook\r\n\r\nGET /live HTTP/1.1\r\n');
  await eventually(() => late.received().includes('live'), 'its first request is answered');

  const closing = harness.server.close();
  late.socket.write('host: offhook\r\n\r\n');
  await late.ended;
  await closing;

  const [, first, second] = late.received().split('HTTP/1.1 ');
  expect([first?.slice(0, 3), second?.slice(0, 3)]).toEqual(['200', '503']);
  expect(second?.toLowerCase()).toContain('connection: close');
  await dripping.closed;
});

test('while the gateway drains, each answer ends its connection', async () => {
  let isDraining = false;
  const { client } = await listening({ isDraining: () => isDraining });
  const { socket, ended, received, read } = await client();
  read();
  socket.write('GET /live HTTP/1.1\r\nhost: offhook\r\n\r\n');
  await eventually(() => received().includes('live'), 'it is answered');
  expect(received()).not.toContain('connection: close');

  isDraining = true;
  socket.write('GET /live HTTP/1.1\r\nhost: offhook\r\n\r\n');
  await ended;

  expect(received().match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  expect(received()).toContain('connection: close');
});
