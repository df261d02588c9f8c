// /ready and /metrics of a gateway whose parts go away and come back, one at a time. A load
// balancer removes and adds the gateway by /ready, and the operator on call reads in it what is
// missing. The metrics make the alerts fire.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startNatsServer } from '../../src/embedded/nats/nats-server.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { eventsOnStream } from '../faults/stream-dump.ts';
import { holds } from '../support/alert-rules.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { makeSeededDataDir, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { glance } from '../support/receiver.ts';
import { ScriptedBot } from '../support/streams/scripted-bot.ts';
import { speech } from '../support/streams/stream-rig.ts';

const allOk = {
  database: 'ok',
  nats: 'ok',
  sip: 'ok',
  lease: 'ok',
  started: 'ok',
  accepting: 'ok',
};

test('a gateway that is ready has written where it listens', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const port = await freeUdpPort();
  const starting = startGateway(dataDir.path, { HTTP_PORT: String(port) });
  let isStarting = true;
  void starting.finally(() => {
    isStarting = false;
  });
  onTestFinished(async () => void (await (await starting).terminate()));

  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/ready`).then(
      ({ status }) => status === 200,
      () => false,
    );
  while (!(await isReady()) && isStarting) {
    // The gateway may accept connections before it is ready. Ask without a pause, so that the first
    // moment of readiness is not missed.
  }

  const runtime = await readFile(join(dataDir.path, 'runtime.json'), 'utf8');
  expect(JSON.parse(runtime)).toMatchObject({ httpUrl: `http://127.0.0.1:${port}` });
});

describe('/ready of a gateway', () => {
  let database: TestDatabase;
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let databaseUrl: string;
  let nats: Awaited<ReturnType<typeof startNats>>;
  const phones = createSocket('udp4');
  beforeAll(async () => {
    phones.bind(0, '127.0.0.1');
    await once(phones, 'listening');
    database = await openTestDatabase('postgres');
    databaseUrl = database.location.databaseUrl ?? '';
    // The tests below end all sessions of this database, so this test must not keep one.
    await database.close();
    cluster = await startCluster({ databaseUrl, audioPort: phones.address().port });
    nats = await startNats();
    gateway = await cluster.startNode('a', {
      NATS_URL: nats.url,
      NODE_LEASE_MS: '5000',
      SHUTDOWN_TIMEOUT_MS: '60000',
    });
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    phones.close();
    await nats.remove();
    await database.remove();
  });

  async function ready() {
    const response = await fetch(`${gateway.runtime.httpUrl}/ready`);
    return { code: response.status, ...((await response.json()) as Ready) };
  }
  type Ready = {
    status: string;
    reasons?: string[];
    degraded?: string[];
    checks: Record<string, string>;
    servers: { name: string; state: string; since: string; affects?: string }[];
  };
  async function serverNow(name: string) {
    return (await ready()).servers.find((server) => server.name === name);
  }
  async function metrics(): Promise<string> {
    return await (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text();
  }

  function allowDatabase(isAllowed: boolean): Promise<void> {
    return asSuperuser(databaseUrl, (name) => [
      `alter database ${name} allow_connections ${String(isAllowed)}`,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    ]);
  }

  async function untilUnready(check: keyof typeof allOk, reason: string): Promise<void> {
    let answer: Awaited<ReturnType<typeof ready>> | undefined;
    await eventually(async () => {
      answer = await ready();
      return answer.checks[check] === 'failed';
    }, `the check ${check} fails`);
    expect(answer).toMatchObject({ code: 503, status: 'unready' });
    expect(answer?.reasons).toContain(reason);
  }

  async function untilReady(): Promise<void> {
    // Check everything in one answer: a node that stood still may have lost a part again.
    let answer: Awaited<ReturnType<typeof ready>> | undefined;
    await eventually(async () => {
      answer = await ready();
      const areUp = answer.servers.every(({ state }) => state === 'up');
      return answer.code === 200 && answer.checks['nats'] === 'ok' && areUp;
    }, 'the gateway is ready with NATS, and every server is up');
    expect(answer).toMatchObject({ status: 'ready', checks: allOk });
    const text = await metrics();
    for (const alert of ['DatabaseAway', 'NatsAway', 'SipEnginesAway'])
      expect(holds(`Offhook${alert}`, text), alert).toBe(false);
  }

  test('names the SIP engine while it is unreachable', async () => {
    await untilReady();
    await cluster.engine.kill();
    await untilUnready('sip', 'no SIP engine is connected');
    expect(await serverNow('drachtio')).toMatchObject({
      ...{ state: 'away', affects: expect.stringContaining('no call can be dialled') },
    });
    expect(holds('OffhookSipEnginesAway', await metrics())).toBe(true);
    await cluster.engine.start();
    await untilReady();
  });

  test('stays ready without NATS, and says so', async () => {
    await nats.stop();
    let answer: Awaited<ReturnType<typeof ready>> | undefined;
    await eventually(async () => {
      answer = await ready();
      return answer.code === 200 && answer.checks['nats'] === 'failed';
    }, 'the gateway is ready without NATS');
    expect(answer).toMatchObject({ status: 'ready', degraded: ['NATS'] });
    const number = numberFor('talk', 5, 77);
    const { callId } = await gateway.dialer.dial({
      target: `tel:+${number}`,
      notifyurl: cluster.receiver.url,
    });
    expect(glance(await cluster.receiver.untilEnded(callId))).toEqual(['Answered', 'completed']);
    const words = /^Calls continue\. Events wait \([1-9]\d*; the oldest for [\d.]+ s\)\./;
    expect(await serverNow('NATS')).toMatchObject({
      ...{ state: 'away', affects: expect.stringMatching(words) },
    });
    const text = await metrics();
    expect(holds('OffhookNatsAway', text)).toBe(true);
    expect(text).toMatch(/^offhook_events_waiting [1-9]/m);
    await nats.start();
    await eventually(async () => (await ready()).checks['nats'] === 'ok', 'NATS is back');
    const published = async () =>
      (await eventsOnStream(nats.url))
        .filter(({ event }) => event.callId === callId)
        .map(({ event }) => event.type);
    await eventually(
      async () => (await published()).includes('completed'),
      'the end of the call is published',
    );
    expect(await published()).toEqual(['queued', 'dialing', 'ringing', 'answered', 'completed']);
    await untilReady();
  });

  test('names the database while it is unreachable', async () => {
    const before = Date.now();
    await allowDatabase(false);
    await untilUnready('database', 'the database does not respond, or is read-only');
    const away = await serverNow('PostgreSQL');
    expect(away).toMatchObject({
      ...{ state: 'away', affects: expect.stringMatching(/^Calls that are up continue\./) },
    });
    expect(Date.parse(away?.since ?? '')).toBeGreaterThanOrEqual(before);
    const text = await metrics();
    expect(holds('OffhookDatabaseAway', text)).toBe(true);
    expect(text).not.toMatch(/^offhook_(calls_waiting|notification_queues|nodes)/m);
    await allowDatabase(true);
    await untilReady();
    const isRead = async () => /^offhook_calls_waiting 0$/m.test(await metrics());
    await eventually(isRead, 'what waits is known again', 60_000);
  });

  test('names the database while it is read-only, and refuses requests with 503', async () => {
    const beReadOnly = (isOn: boolean) =>
      asSuperuser(databaseUrl, (name) => [
        `alter database ${name} set default_transaction_read_only = ${isOn ? 'on' : 'off'}`,
        // End the sessions, as a take-over by another server does. When the database is writable
        // again, the gateway must replace the sessions that found it read-only.
        ...(isOn
          ? [`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`]
          : []),
      ]);
    const target = `tel:+${numberFor('talk', 1, 79)}`;
    await beReadOnly(true);
    await untilUnready('database', 'the database does not respond, or is read-only');
    expect((await serverNow('PostgreSQL'))?.affects).toMatch(/^It is read-only\./);
    for (const headers of [{}, { 'idempotency-key': 'while-it-reads' }]) {
      const { status, body } = await gateway.dialer.post({ target }, headers);
      expect({ status, body }).toMatchObject({
        status: 503,
        body: { type: 'urn:offhook:problem:unavailable' },
      });
    }
    await beReadOnly(false);
    await untilReady();
    await gateway.dialer.dial({ target }, { 'idempotency-key': 'while-it-reads' });
  });

  test('takes and ends calls, and keeps its lease, while clients read continuously', async () => {
    const isHeld = async () => (await ready()).checks['lease'] === 'ok';
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query('begin');
    await client.query('lock table sounds');
    const answers: { status: number; headers: { 'retry-after'?: unknown } }[] = [];
    let isOver = false;
    const read = async (): Promise<void> => {
      while (!isOver) answers.push(await gateway.dialer.request('GET', '/api/public/sounds'));
    };
    const reading = Promise.all(Array.from({ length: 40 }, read));
    try {
      // From now on some reads are refused, and other reads take their place.
      await eventually(() => answers.length > 0, 'reads are refused');
      const { callId } = await gateway.dialer.dial({
        ...{ target: `tel:+${numberFor('stay', 0, 80)}`, notifyurl: cluster.receiver.url },
      });
      await eventually(() => cluster.farEnd.up === 1, 'the call is up');
      await gateway.dialer.end(callId);
      await eventually(() => cluster.farEnd.up === 0, 'the call has ended');
      await eventually(isHeld, 'the lease is held');
    } finally {
      isOver = true;
      await client.query('commit');
      await client.end();
      await reading;
    }
    const refusals = answers.filter(({ status }) => status !== 200);
    expect(refusals.length).toBeGreaterThan(0);
    for (const { status, headers } of refusals) {
      expect([status, headers['retry-after']]).toEqual([503, '5']);
    }
  });

  test('carries the audio of its calls while NATS and the database are unreachable', async () => {
    const heard: Buffer[] = [];
    phones.on('message', (packet) => heard.push(packet.subarray(12)));
    await using bot = await ScriptedBot.start();
    const { callId } = await gateway.dialer.dial({
      target: `tel:+${numberFor('stay', 0, 78)}`,
      ...{ notifyurl: cluster.receiver.url, stream: { url: bot.url } },
    });
    const connection = await bot.connection();
    await nats.stop();
    await allowDatabase(false);
    await untilUnready('database', 'the database does not respond, or is read-only');
    const said = speech(8_000);
    connection.say(said);
    connection.mark('said');
    await eventually(() => connection.marks.includes('said'), 'the gateway has played the audio');
    await eventually(() => Buffer.concat(heard).includes(said), 'the phone hears the audio');
    const { length } = connection.of('media');
    await eventually(
      () => connection.of('media').length > length + 25,
      'the bot still receives audio',
    );

    await allowDatabase(true);
    await nats.start();
    await untilReady();
    expect(bot.connections).toHaveLength(1);
    await gateway.dialer.end(callId);
    expect(glance(await cluster.receiver.untilEnded(callId))).toEqual(['Answered', 'completed']);
    await eventually(() => connection.closeCode === 1_000, 'the stream is closed');
  });

  test('names the lease while it cannot be renewed', async () => {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    onTestFinished(() => client.end());

    await client.query('begin; select * from nodes for update');
    await untilUnready('lease', 'the lease of this node is not held');
    await client.query('rollback');
    await untilReady();
  });

  test('says that it is shutting down while its calls end', async () => {
    await gateway.dialer.dial({ target: `tel:+${numberFor('stay', 0, 0)}` });
    await eventually(() => cluster.farEnd.up === 1, 'a call is up');

    gateway.child.kill('SIGTERM');
    await untilUnready(
      'accepting',
      'this node is shutting down: it lets its calls end and takes no new ones',
    );
    expect(cluster.farEnd.up).toBe(1);
    await gateway.terminate();
    expect(cluster.farEnd.up).toBe(0);
  });

  // This test uses a new node, after the previous node has ended. If one of two nodes stood still,
  // the other might declare it lost.
  test('keeps taking requests for SHUTDOWN_DELAY_MS, so that a load balancer can remove it first', async () => {
    const leaving = await cluster.startNode('b', {
      SHUTDOWN_DELAY_MS: '3600000',
      SHUTDOWN_TIMEOUT_MS: '3600000',
    });
    const status = async () => (await fetch(`${leaving.runtime.httpUrl}/ready`)).status;
    await eventually(async () => (await status()) === 200, 'the node is ready');

    leaving.child.kill('SIGTERM');
    await eventually(async () => (await status()) === 503, 'the node is not ready');

    const { callId } = await leaving.dialer.dial({ target: `tel:+${numberFor('stay', 0, 1)}` });
    expect(callId).toMatch(/^call-/);
    await eventually(() => cluster.farEnd.up === 1, 'the call is up');
    for (let times = 0; times < 5; times += 1) expect(await status()).toBe(503);
    // Another check may have failed before the node became ready.
    const failureOfAccepting = /"check":"accepting".*"health check failed"/g;
    expect(leaving.output().match(failureOfAccepting)).toHaveLength(1);
    // Send the second signal.
    await leaving.terminate();
    await eventually(() => cluster.farEnd.up === 0, 'the call has ended');
  });
});

/** Starts a NATS server that can restart at the same address with its data. */
async function startNats() {
  const dataDir = await mkdtemp(join(tmpdir(), 'offhook-nats-'));
  const start = () =>
    startNatsServer({ dataDir, searchPath: process.env['PATH'] ?? '', logger: silentLogger });
  let server = await start();
  return {
    url: server.url,
    stop: () => server.stop(),
    start: async () => {
      server = await start();
    },
    remove: async () => {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function asSuperuser(
  databaseUrl: string,
  statementsFor: (name: string) => readonly string[],
): Promise<void> {
  const [, name = ''] = /\/(test_\w+)\?/.exec(databaseUrl) ?? [];
  const client = new Client({ connectionString: databaseUrl.replace(name, 'postgres') });
  await client.connect();
  for (const statement of statementsFor(name)) await client.query(statement);
  await client.end();
}
