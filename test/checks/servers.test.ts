// Tests the checks of servers and ports that are available, missing or wrong.

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { type Check, runChecks } from '../../src/checks/check.ts';
import { clockCheck, databaseCheck, judgeClock } from '../../src/checks/database.ts';
import { portsCheck } from '../../src/checks/ports.ts';
import { receiverCheck } from '../../src/checks/receiver.ts';
import { drachtioCheck, natsCheck, natsServerCheck } from '../../src/checks/start-checks.ts';
import { loadConfig } from '../../src/config.ts';
import { startSipEngine } from '../../src/embedded/drachtio/engine.ts';
import { startNatsServer } from '../../src/embedded/nats/nats-server.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { startReceiver } from '../support/receiver.ts';

const open: Server[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** Opens a port that accepts connections and never sends anything. */
async function silentPort(): Promise<number> {
  const server = createServer((socket) => socket.resume());
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

async function finding(check: Check, timeoutMs?: number) {
  const [result] = await runChecks([check], timeoutMs);
  return result;
}

/** Repeats a check that timed out, because the machine may have stood still for seconds. */
async function answerTo(check: Check) {
  let result: Awaited<ReturnType<typeof finding>>;
  await eventually(async () => {
    result = await finding(check, 60_000);
    return !/time-?out|timed out|no answer/i.test(result?.detail ?? '');
  }, 'an answer');
  return result;
}

const searchPath = process.env['PATH'] ?? '';
const secretsKey = 'ab'.repeat(32);

describe('every check', () => {
  test('ends, even if its server never answers', async () => {
    const never: Check = { name: 'never', run: () => new Promise(() => undefined) };

    expect(await finding(never, 10)).toEqual({
      name: 'never',
      isAwaited: false,
      state: 'failed',
      detail: 'the never check did not finish within 0.01 s',
    });
  });
});

describe('ports', () => {
  test('used by another program are named by their variable', async () => {
    const taken = await silentPort();
    const free = String(await freeUdpPort());
    const examined = (variables: Record<string, string>) =>
      answerTo(portsCheck(loadConfig({ HTTP_PORT: free, SIP_PORT: '0', ...variables })));

    expect(await examined({})).toMatchObject({ state: 'ok' });
    expect(await examined({ HTTP_PORT: String(taken) })).toMatchObject({
      state: 'failed',
      detail: `HTTP_PORT: TCP port ${taken} of 127.0.0.1 cannot be used: another program uses it (EADDRINUSE)`,
    });
    expect((await examined({ SIP_PORT: String(taken) }))?.detail).toMatch(/^SIP_PORT: TCP port/);
    expect((await examined({ SIP_HOST: '203.0.113.9', MEDIA_HOST: '127.0.0.1' }))?.detail).toBe(
      'SIP_HOST: 203.0.113.9 cannot be listened on: this machine has no such address (EADDRNOTAVAIL)',
    );
    expect((await examined({ MEDIA_HOST: '203.0.113.9' }))?.detail).toMatch(/^MEDIA_HOST: 203/);
  });
});

describe('nats-server', () => {
  test('is found and run', async () => {
    expect(await answerTo(natsServerCheck(loadConfig({ PATH: searchPath })))).toMatchObject({
      state: 'ok',
      detail: expect.stringMatching(/nats-server: v2\./) as string,
    });
  });

  test('is named by its variable if it is missing, with what to install', async () => {
    const config = loadConfig({ NATS_SERVER_BIN: '/nowhere/nats-server' });

    expect(await answerTo(natsServerCheck(config))).toMatchObject({
      state: 'failed',
      detail: expect.stringMatching(/^NATS_SERVER_BIN is \/nowhere.*Install it/) as string,
    });
  });
});

describe('NATS', () => {
  test('passes if it answers, has JetStream and accepts the credentials', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'offhook-nats-'));
    const server = await startNatsServer({ dataDir, searchPath, logger });
    onTestFinished(async () => {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    });
    const { host, password } = new URL(server.url);

    const well = await answerTo(natsCheck(loadConfig({ NATS_URL: server.url })));
    expect(well).toMatchObject({ state: 'ok' });
    expect(well?.detail).toMatch(`nats://${host}, version 2.`);
    expect(well?.detail).not.toContain(password);
    expect(await answerTo(natsCheck(loadConfig({ NATS_URL: `nats://x:y@${host}` })))).toMatchObject(
      {
        state: 'failed',
        detail: expect.stringMatching(
          `NATS_URL: nats://${host} cannot be used: .*uthorization`,
        ) as string,
      },
    );
  });

  test('fails if it is missing', async () => {
    const url = `nats://127.0.0.1:${await freeUdpPort()}`;

    expect(await answerTo(natsCheck(loadConfig({ NATS_URL: url })))).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('cannot be used: no server listens there') as string,
    });
  });
});

describe('drachtio', () => {
  test('passes if it accepts the secret', async () => {
    await using engine = await startSipEngine({
      ...{ sipHost: '127.0.0.1', sipPort: 0, controlHost: '127.0.0.1', controlPort: 0 },
      ...{ secret: 'right', logger },
    });
    const examined = (secret: string, port = engine.controlPort) =>
      answerTo(drachtioCheck(loadConfig({ DRACHTIO_URL: `tcp://:${secret}@127.0.0.1:${port}` })));
    const unusedPort = await freeUdpPort();

    expect(await examined('right')).toMatchObject({ state: 'ok' });
    expect(await examined('wrong')).toMatchObject({
      state: 'failed',
      detail: `DRACHTIO_URL: 127.0.0.1:${engine.controlPort}: the engine refused the secret`,
    });
    expect((await examined('right', unusedPort))?.detail).toContain('ECONNREFUSED');
  });
});

describe('the database', () => {
  const examined = (databaseUrl: string, check = databaseCheck) =>
    answerTo(check(loadConfig({ DATABASE_URL: databaseUrl, SECRETS_KEY: secretsKey })));

  test('passes if it answers and its clock agrees', async () => {
    expect(await examined(inject('postgresUrl'))).toMatchObject({ state: 'ok' });
    expect(await examined(inject('postgresUrl'), clockCheck)).toMatchObject({ state: 'ok' });
  });

  test('fails if it is missing or silent', async () => {
    const unusedPort = await freeUdpPort();

    expect((await examined(`postgres://127.0.0.1:${unusedPort}/x`))?.detail).toBe(
      'DATABASE_URL: the database cannot be used: no server listens there (ECONNREFUSED)',
    );
    const silent = `postgres://127.0.0.1:${await silentPort()}/x`;
    const check = databaseCheck(loadConfig({ DATABASE_URL: silent, SECRETS_KEY: secretsKey }));
    expect((await finding(check))?.detail).toContain('timeout');
  });

  test.each([
    [0, 'ok', 'agrees with the database'],
    [5_000, 'warning', '5.0 s behind the database'],
    [-5_000, 'warning', '5.0 s ahead of the database'],
    [90_000, 'failed', '90.0 s behind'],
  ] as const)('with a clock %d ms ahead of this machine: %s', (aheadMs, state, detail) => {
    const now = Date.now();

    expect(judgeClock(now + aheadMs, now, now)).toEqual({
      state,
      detail: expect.stringContaining(detail) as string,
    });
  });
});

describe('a receiver', () => {
  const loopback = ['127.0.0.0/8'];

  test('passes if it accepts connections, and gets no request', async () => {
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());

    expect(await answerTo(receiverCheck(receiver.url, loopback))).toMatchObject({ state: 'ok' });
    expect(receiver.received).toEqual([]);
  });

  test('fails if it is missing, or if notifications to it are not allowed', async () => {
    const unusedPort = `http://127.0.0.1:${await freeUdpPort()}/`;

    expect((await answerTo(receiverCheck(unusedPort, loopback)))?.detail).toContain(
      'no server listens',
    );
    expect((await answerTo(receiverCheck(unusedPort, [])))?.detail).toContain(
      'NOTIFY_ALLOWED_NETWORKS',
    );
    expect((await answerTo(receiverCheck('ftp://here', [])))?.detail).toContain('http or https');
    expect(await answerTo(receiverCheck(undefined, []))).toMatchObject({ state: 'skipped' });
  });
});
