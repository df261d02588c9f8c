// npm run test:upgrade -- --from FOLDER: a gateway of an older build (FOLDER is its `dist`) and one of this version on one
// PostgreSQL and one NATS, with calls in every state; the older one is stopped, by SIGTERM and, in a second round, by SIGKILL. No call
// may be lost, told twice or dialled twice, and what the older one left on NATS is removed. Then the same on a laptop's data folder.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Client } from 'pg';
import type { EngineDeath } from '../faults/aftermath.ts';
import { violations } from '../faults/invariants.ts';
import { eventsOnStream } from '../faults/stream-dump.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import type { DevApp } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { FarEnd, numberFor } from '../support/far-end.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../support/gateway-process.ts';
import { startPostgres } from '../support/postgres-server.ts';
import { isTerminal, startReceiver } from '../support/receiver.ts';

const { values } = parseArgs({
  options: {
    from: { type: 'string' },
    calls: { type: 'string', default: '200' },
  },
});
if (values.from === undefined) throw new Error('--from FOLDER: the dist folder of the older build');
const olderBuild = values.from;
const calls = Number(values.calls);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const postgres = await startPostgres();
let broken = 0;
try {
  await eventually(() => statement(postgres.url, 'select 1'), 'PostgreSQL takes statements');
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const name = `upgrade_${signal.toLowerCase()}`;
    await statement(postgres.url, `create database ${name}`);
    broken += await upgrade(postgres.url.replace('/postgres?', `/${name}?`), signal);
  }
  broken += await upgradeEmbedded();
} finally {
  await postgres.stop();
}
process.exitCode = broken === 0 ? 0 : 1;

async function upgrade(databaseUrl: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<number> {
  const startedAt = Date.now();
  const trunk = ['maxConcurrentCalls: 1000', 'callsPerSecond: 100'];
  await using cluster = await startCluster({
    ...{ databaseUrl, trunk, createApp: createOlderApp },
    variables: {
      NODE_LEASE_MS: '3000',
      MAX_CALL_DURATION_MS: '20000',
      SIP_ALLOWED_NETWORKS: '127.0.0.0/8',
    },
  });
  const accepted = new Map<string, string>();
  const older = await cluster.startNode('older', {}, olderBuild);
  // Some calls are up, ring, wait for their retry, before the newer gateway changes the tables.
  await dial(older, cluster, accepted, 0, Math.floor(calls / 2));
  const newer = await cluster.startNode('newer');
  await Promise.all([
    dial(older, cluster, accepted, calls, Math.floor(calls / 4)),
    dial(newer, cluster, accepted, 2 * calls, Math.floor(calls / 4)),
  ]);
  await pause(500);
  const upThen = cluster.farEnd.calls.filter(({ endedAt }) => endedAt === undefined).length;
  if (signal === 'SIGKILL') await older.kill();
  else await older.terminate();
  say(`${signal} with ${upThen} calls up, ${accepted.size} accepted`);
  await eventually(
    () => unnotified(cluster, accepted).length === 0,
    'every call is told of',
    90_000,
  );
  await eventually(
    () => isRemoved(cluster),
    'what the older gateway left on NATS is removed',
    60_000,
  );
  return await judge(cluster, accepted, { startedAt, engineDeaths: [] });
}

/** A laptop's data folder: killed with calls up, and notifications owed to a receiver that refused them. */
async function upgradeEmbedded(): Promise<number> {
  const startedAt = Date.now();
  const dataDir = await makeDataDir();
  await using farEnd = await FarEnd.start();
  const receiver = await startReceiver();
  try {
    const variables = { SIP_ALLOWED_NETWORKS: '127.0.0.0/8', MAX_CALL_DURATION_MS: '20000' };
    const older = await startGateway(dataDir.path, variables, undefined, olderBuild);
    receiver.answerWith(() => 503);
    const accepted = new Map<string, string>();
    await dial(older, { farEnd, receiver }, accepted, 0, 20, () => true);
    await pause(1_000);
    await older.kill();
    // Its SIP engine died with it: who rings then rings until the phone gives up.
    const engineDeaths = [{ at: Date.now() }];
    receiver.answerWith(() => 200);
    const newer = await startGateway(dataDir.path, variables);
    const world = { farEnd, receiver, nats: { url: newer.runtime.natsUrl } };
    try {
      await eventually(
        () => unnotified(world, accepted).length === 0,
        'every call is told of',
        90_000,
      );
      await eventually(() => isRemoved(world), 'what the older version left is removed', 60_000);
      say(`embedded, killed with calls up, ${accepted.size} accepted`);
      const isOver = () => farEnd.calls.every(({ endedAt }) => endedAt !== undefined);
      await eventually(isOver, 'no phone rings', 60_000);
      return await judge(world, accepted, { startedAt, engineDeaths });
    } finally {
      await newer.terminate();
    }
  } finally {
    await receiver.close();
    await dataDir.remove();
  }
}

type World = Pick<Cluster, 'farEnd' | 'receiver'> & { readonly nats: { readonly url: string } };

async function judge(
  { farEnd, receiver, nats }: World,
  accepted: ReadonlyMap<string, string>,
  when: { readonly startedAt: number; readonly engineDeaths: readonly EngineDeath[] },
): Promise<number> {
  const found = violations({
    ...{ accepted, refused: new Set<string>(), ...when, botConnections: [], agents: new Map() },
    // Both processes die in the middle of calls.
    faults: ['the old process dies', 'the new process dies'].map((what) => ({
      ...{ what, from: when.startedAt },
    })),
    farCalls: farEnd.calls,
    events: await eventsOnStream(nats.url),
    notifications: receiver.accepted().map(({ rawBody, body }) => ({ raw: rawBody, body })),
  });
  for (const violation of found) say(`VIOLATED  ${violation}`);
  say(`${receiver.accepted().length} notifications, ${found.length} violations`);
  return found.length;
}

/** Every kind of phone in turn. */
async function dial(
  { dialer }: GatewayProcess,
  { farEnd, receiver }: Pick<Cluster, 'farEnd' | 'receiver'>,
  accepted: Map<string, string>,
  first: number,
  count: number,
  // Direct calls were carried by NATS.
  isDirect = (index: number): boolean => index % 10 === 3,
): Promise<void> {
  const kinds = ['talk', 'stay', 'busy', 'ring', 'late'] as const;
  for (let index = first; index < first + count; index += 1) {
    const number = numberFor(kinds[index % kinds.length] ?? 'talk', 5 + (index % 90), index);
    const { callId } = await dialer.dial({
      target: isDirect(index) ? `sip:${number}@127.0.0.1:${farEnd.port}` : `tel:+${number}`,
      notifyUrl: receiver.url,
    });
    accepted.set(number, callId);
  }
}

function unnotified(
  { receiver }: Pick<Cluster, 'receiver'>,
  accepted: ReadonlyMap<string, string>,
): readonly string[] {
  const told = new Set(
    receiver.accepted().flatMap(({ body }) => (isTerminal(body) ? [body.callId] : [])),
  );
  return [...accepted.values()].filter((callId) => !told.has(callId));
}

async function isRemoved({ nats }: Pick<World, 'nats'>): Promise<boolean> {
  const url = new URL(nats.url);
  const connection = await connect({ servers: url.host, user: url.username, pass: url.password });
  try {
    const manager = await jetstreamManager(connection);
    const streams: string[] = [];
    for await (const { config } of manager.streams.list()) streams.push(config.name);
    const consumers: string[] = [];
    for await (const { name } of manager.consumers.list('offhook_calls')) consumers.push(name);
    return !streams.includes('offhook_dialout') && consumers.length === 0;
  } finally {
    await connection.close();
  }
}

/** Its tables and credentials are those of the older version. */
async function createOlderApp(databaseUrl: string, secretsKey: string): Promise<DevApp> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      ...[join(olderBuild, 'cli.js'), 'apps', 'create', '--name', 'upgrade', '--account', 'acme'],
      ...['--bots', '*', '--scopes', 'Dialout'],
    ],
    { env: { PATH: process.env['PATH'], DATABASE_URL: databaseUrl, SECRETS_KEY: secretsKey } },
  );
  return JSON.parse(stdout) as DevApp;
}

async function statement(url: string, text: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    await client.query(text);
    return true;
  } catch (error) {
    if (text === 'select 1') return false;
    throw error;
  } finally {
    await client.end();
  }
}
