// SIGTERM while everything around the gateway obstructs it: clients send slowly or do not read,
// receivers and bots never end, and servers do not answer. The gateway must still exit, and leave
// no process behind.

import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startNatsServer } from '../../src/embedded/nats/nats-server.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createAppIn } from '../support/apps.ts';
import { makeSeededDataDir, makeTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../support/gateway-process.ts';
import { startReceiver } from '../support/receiver.ts';

/**
 * Bound from the end of the drain to the end of the process: the 5 s that sip-config/README.md
 * promises, which test/app/shutdown.test.ts proves, and 10 s for a machine that is busy with ten
 * other things. Without bounds in the gateway, the process would not end at all.
 */
const afterDrainMs = 5_000 + 10_000;
const shutdownTimeoutMs = 500;
const personStays = 'tel:+12025550102';

/**
 * Ends the gateway by SIGTERM. Returns its exit code and how long it took. Waits until no child
 * process is left.
 */
async function endOf({ child, runtime }: GatewayProcess) {
  const children = await childrenOf(runtime.pid);
  const startedAtMs = performance.now();
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const [code] = (await exited) as [number | null];
  const tookMs = performance.now() - startedAtMs;
  await eventually(() => !children.some(isAlive), 'the child processes are gone');
  return { code, tookMs, children };
}

async function childrenOf(pid: number): Promise<readonly number[]> {
  const tasks = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')),
  );
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function untilUp({ dialer }: GatewayProcess, count: number): Promise<void> {
  await eventually(async () => {
    const { body } = await dialer.list('?state=answered');
    return (body as { readonly calls: readonly unknown[] }).calls.length === count;
  }, `${count} calls are up`);
}

/**
 * Opens a connection that sends `text` and then, if given, `dripping` repeatedly. It never reads
 * and never closes.
 */
async function stubborn(url: string, text: string, dripping?: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined).pause();
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(text);
  if (dripping !== undefined) {
    const timer = setInterval(() => socket.writable && socket.write(dripping), 300);
    socket.once('close', () => clearInterval(timer));
  }
  return socket;
}

/**
 * Starts a server that sends `answer` to each client, then `dripping` repeatedly. It never closes a
 * connection.
 */
async function stubbornServer(answer: (request: string) => string, dripping = ''): Promise<string> {
  const server = createServer((socket) => {
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    const timer = setInterval(() => socket.writable && socket.write(dripping), 300);
    socket.once('close', () => clearInterval(timer));
    socket.once('data', (data) => {
      socket.write(answer(data.toString()));
      socket.pause();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function request(line: string, ...headers: readonly string[]): string {
  return `${[`${line} HTTP/1.1`, 'host: 127.0.0.1', ...headers].join('\r\n')}\r\n\r\n`;
}

async function sessionCookie({ runtime: { httpUrl }, dialer }: GatewayProcess): Promise<string> {
  const { url } = (await dialer.request('POST', '/console/link')).body as { readonly url: string };
  const answer = await fetch(`${httpUrl}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: httpUrl },
    body: JSON.stringify({ token: url.split('token=')[1] }),
  });
  return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
}

/** Opens one stubborn client of each kind, and fifty that send dial-out requests slowly. */
async function openStubbornClients(gateway: GatewayProcess, callId: string): Promise<void> {
  const { httpUrl } = gateway.runtime;
  const { adminUrl = '' } = JSON.parse(
    await readFile(`${gateway.dataDir}/runtime.json`, 'utf8'),
  ) as { readonly adminUrl?: string };
  const auth = `auth: ${gateway.dialer.token}`;
  const cookie = `cookie: ${await sessionCookie(gateway)}`;
  const length = 'content-length: 100000';
  const json = 'content-type: application/json';
  const bot = '/api/public/bot/bot-1';
  const dialout = '/api/1.1/public/bot/bot-1/V2/contactcenter/dialout';
  const twilio = `/2010-04-01/Accounts/AC${'1'.repeat(32)}/Calls/CA${'2'.repeat(32)}.json`;
  const imports =
    '/contactcenter/api/v1/public/analytics/bot-1/storeContactCenterFunctionalities?accountId=dev&orgId=o&type=skillGroups';
  const form = 'content-type: application/x-www-form-urlencoded';
  const admin = `authorization: Bearer ${new URL(adminUrl).password}`;
  const events = 'accept: text/event-stream';
  await Promise.all([
    // Bodies that arrive slowly.
    ...Array.from({ length: 50 }, () =>
      stubborn(httpUrl, `${request(`POST ${dialout}`, auth, json, length)}{`, ' '),
    ),
    stubborn(httpUrl, request(`POST ${twilio}`, form, length), 'a'),
    stubborn(httpUrl, request(`POST ${imports}`, auth, json, length), ' '),
    stubborn(
      httpUrl,
      request('PUT /api/public/sounds/slow', auth, 'content-type: audio/wav', length),
      'a',
    ),
    stubborn(adminUrl, request('POST /nodes.list', admin, json, length), ' '),
    // Answers that nobody reads. The first ones fill the buffers of the connection.
    stubborn(
      httpUrl,
      request('GET /openapi.json').repeat(40) +
        request('GET /metrics') +
        request(`GET ${bot}/calls?limit=200`, auth),
    ),
    // Streams of events, and a request that waits for a context.
    stubborn(httpUrl, request('GET /api/public/events', auth, events)),
    stubborn(httpUrl, request(`GET ${bot}/calls/${callId}/events`, auth, events)),
    stubborn(httpUrl, request(`GET ${bot}/calls/${callId}/context?wait=30s`, auth)),
    stubborn(httpUrl, request('GET /console/api/public/events', cookie, events)),
    // A connection without data, half a request head, an idle connection, bytes that are not HTTP,
    // and a half-open connection.
    stubborn(httpUrl, ''),
    stubborn(adminUrl, ''),
    stubborn(httpUrl, 'GET /live HTTP/1.1\r\nhost: x\r\n', 'x: y\r\n'),
    stubborn(httpUrl, request('GET /live')),
    stubborn(httpUrl, 'rubbish\r\n\r\n', 'rubbish'),
    stubborn(httpUrl, `${request(`POST ${dialout}`, auth, json, length)}{`).then((socket) =>
      socket.end(),
    ),
  ]);
}

test('no client, receiver or bot delays the exit', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const gateway = await startGateway(dataDir.path, {
    SHUTDOWN_TIMEOUT_MS: String(shutdownTimeoutMs),
  });
  onTestFinished(() => gateway.kill());
  const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n';
  const dripping = await stubbornServer(() => ok, ' ');
  const mute = await stubbornServer(() => '');
  const bot = await stubbornServer(upgradeAnswer);
  const notified = await gateway.dialer.dial({
    target: personStays,
    notifyurl: receiver.url,
    stream: { url: `ws://${bot}/` },
  });
  for (const address of [dripping, mute]) {
    await gateway.dialer.dial({ target: personStays, notifyurl: `http://${address}/` });
  }
  await untilUp(gateway, 3);
  await openStubbornClients(gateway, notified.callId);
  // After this answer the gateway has read the earlier requests.
  await gateway.dialer.list();

  const { code, tookMs, children } = await endOf(gateway);

  expect(tookMs).toBeLessThan(shutdownTimeoutMs + afterDrainMs);
  // On a busy machine the gateway may leave a part behind (124), but never because of these peers.
  expect([0, 124]).toContain(code);
  expect(children.length).toBeGreaterThan(0);
  expect((await receiver.untilEnded(notified.callId)).at(-1)).toMatchObject({
    status: 'completed',
    reason: 'Gateway shut down',
  });
  // The gateway logs no error because of its clients.
  expect(gateway.output()).not.toContain('request failed');
});

test('a nats-server that does not end is killed', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const gateway = await startGateway(dataDir.path);
  onTestFinished(() => gateway.kill());
  const [nats = 0] = await childrenOf(gateway.runtime.pid);
  process.kill(nats, 'SIGSTOP');

  const { code, tookMs } = await endOf(gateway);

  expect(tookMs).toBeLessThan(afterDrainMs);
  expect(code).toBe(124);
  expect(gateway.output()).toMatch(/"part":"nats-server".*a part is left behind/);
});

test('an unresponsive PostgreSQL or NATS does not delay the exit', async () => {
  const dataDir = await makeDataDir();
  onTestFinished(() => dataDir.remove());
  const { databaseUrl = '' } = await makeTestDatabase('postgres');
  const secretsKey = randomBytes(32).toString('hex');
  const app = await createAppIn(databaseUrl, secretsKey);
  const nats = await startNatsServer({
    dataDir: `${dataDir.path}/nats`,
    searchPath: process.env['PATH'] ?? '',
    logger: silentLogger,
  });
  onTestFinished(() => nats.stop());
  const gateway = await startGateway(
    dataDir.path,
    {
      ...{ DATABASE_URL: databaseUrl, SECRETS_KEY: secretsKey, NATS_URL: nats.url },
      ...{ SANDBOX: 'on', SHUTDOWN_TIMEOUT_MS: String(shutdownTimeoutMs) },
    },
    app,
  );
  onTestFinished(() => gateway.kill());
  await gateway.dialer.dial({ target: personStays });
  await untilUp(gateway, 1);
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(
    'begin; lock table nodes, calls, call_events, notifications, notification_lanes',
  );
  process.kill(nats.pid ?? 0, 'SIGSTOP');
  onTestFinished(() => void process.kill(nats.pid ?? 0, 'SIGCONT'));

  const { code, tookMs } = await endOf(gateway);

  expect(tookMs).toBeLessThan(shutdownTimeoutMs + afterDrainMs);
  expect(code).toBe(124);
  expect(gateway.output()).toMatch(/"part":"lease".*a part is left behind/);
});

test('an interrupted first start leaves no process behind', async () => {
  const dataDir = await makeDataDir();
  onTestFinished(() => dataDir.remove());
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('../../dist/main.js', import.meta.url))],
    {
      env: { PATH: process.env['PATH'], DATA_DIR: dataDir.path, HTTP_PORT: '0', SIP_PORT: '0' },
      stdio: 'ignore',
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  let children: readonly number[] = [];
  await eventually(async () => {
    children = await childrenOf(child.pid ?? 0);
    return children.length > 0;
  }, 'the database is being made');
  child.kill('SIGTERM');
  child.kill('SIGINT');

  expect(await exited).toEqual([1, null]);
  await eventually(() => !children.some(isAlive), 'the child processes are gone');
});

/** Returns the answer to a WebSocket upgrade (RFC 6455, section 4.2.2). */
function upgradeAnswer(text: string): string {
  const [, key = ''] = /^sec-websocket-key: *(\S+)/im.exec(text) ?? [];
  const accept = createHash('sha1')
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  return `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`;
}
