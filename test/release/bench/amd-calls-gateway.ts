// The gateway that the bench of calls with detection measures, together with its database and NATS.
// Measures the CPU time of each process and thread, and counts the messages to and from NATS, SQL
// and drachtio.

import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { findNatsServer } from '../../../src/embedded/nats/nats-program.ts';
import type { DevApp } from '../../support/dialer-client.ts';
import { freeUdpPort } from '../../support/free-port.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.ts';
import {
  commandOf,
  processesUnder,
  threadSeconds,
  threadWakes,
  ticksPerSecond,
} from '../../support/process-tree.ts';
import { profileThreads, type Spent, sumOf } from './amd-calls-profile.ts';
import type { Build } from './build-of-commit.ts';

const run = promisify(execFile);
const secretsKey = 'ab'.repeat(32);
/** As many ports as a gateway has by default. */
const mediaPortsEach = 10_000;
const firstMediaPort = 10_000;

/**
 * The order of the report. `gateway: V8 and libuv` are the threads that run the helpers of V8 and
 * libuv, not code of this project.
 */
export const cpuParts = [
  'gateway: main thread',
  'gateway: media workers',
  'gateway: SIP engine',
  'gateway: PGlite',
  'gateway: other workers',
  'gateway: V8 and libuv',
  'PostgreSQL',
  'nats-server',
] as const;
export type CpuPart = (typeof cpuParts)[number];

export const counted = [
  'messages to NATS (in_msgs of /varz)',
  'messages from NATS (out_msgs of /varz)',
  'statements to SQL (queries of the pg clients)',
  'frames to drachtio',
  'frames from drachtio',
  'read and write calls (/proc/PID/io)',
] as const;
type Counted = (typeof counted)[number];

export type Usage = {
  /** CPU time in seconds. */
  readonly cpu: Readonly<Record<CpuPart, number>>;
  /** How often threads began to wait, and so were woken later (voluntary context switches). */
  readonly wakes: Readonly<Record<CpuPart, number>>;
  readonly counts: Readonly<Record<Counted, number>>;
  /** How often each statement was sent, by its name or the begin of its text. */
  readonly statements: Readonly<Record<string, number>>;
};

export type MeasuredGateway = AsyncDisposable & {
  readonly name: string;
  readonly gateway: GatewayProcess;
  /** URL of its PostgreSQL. Undefined on PGlite. */
  readonly postgresUrl: string | undefined;
  /** HTTP port of the nats-server's monitoring. */
  readonly natsMonitorPort: number;
  usage(): Promise<Usage>;
  /** Returns the CPU time in ms that the threads spend during the work, by subsystem. */
  profile(work: () => Promise<unknown>): Promise<ReadonlyMap<CpuPart, Spent>>;
  /** Returns the ids of the threads of each part of the gateway. */
  threads(): Promise<ReadonlyMap<CpuPart, readonly number[]>>;
};

export async function startMeasured(
  build: Build,
  options: { readonly embedded: boolean; readonly index: number },
): Promise<MeasuredGateway> {
  const endings: (() => Promise<unknown>)[] = [];
  const dispose = async (): Promise<void> => {
    for (const end of endings.toReversed()) await end();
  };
  try {
    const dataDir = await makeDataDir();
    endings.push(() => dataDir.remove());
    const probe = await makeDataDir();
    endings.push(() => probe.remove());
    const postgres = options.embedded ? undefined : await startPostgres({ fsync: true });
    if (postgres !== undefined) endings.push(() => postgres.stop());
    const monitorPort = await freeUdpPort();
    const from = firstMediaPort + options.index * mediaPortsEach;
    const variables = {
      NODE_OPTIONS: `--import ${probeUrl(probe.path)}`,
      NATS_SERVER_BIN: await monitoredNats(probe.path, monitorPort),
      NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
      SIP_ALLOWED_NETWORKS: '127.0.0.0/8',
      MEDIA_PORT_MIN: String(from),
      MEDIA_PORT_MAX: String(from + mediaPortsEach - 1),
      ...(postgres === undefined ? {} : databaseVariables(postgres)),
    };
    const app = postgres === undefined ? undefined : await makeApp(build, dataDir.path, postgres);
    const gateway = await startGateway(dataDir.path, variables, app, build.folder);
    endings.push(() => gateway.terminate());
    const { pid } = gateway.runtime;
    return {
      name: build.name,
      gateway,
      postgresUrl: postgres?.url,
      natsMonitorPort: monitorPort,
      usage: async () => ({
        cpu: await readCpu(pid, probe.path, postgres),
        wakes: await readWakes(pid, probe.path, postgres),
        ...(await readCounts(pid, probe.path, monitorPort)),
      }),
      profile: (work) => profileParts(probe.path, work),
      threads: async () => groupedThreads(await threadScripts(probe.path)),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function probeUrl(folder: string): string {
  const url = new URL('./amd-calls-probe.mjs', import.meta.url);
  url.searchParams.set('folder', folder);
  return url.href;
}

function databaseVariables(postgres: PostgresServer): Record<string, string> {
  return { DATABASE_URL: postgres.url, SECRETS_KEY: secretsKey };
}

/** Creates an app with the build's own command, because another build may use another schema. */
async function makeApp(build: Build, dataDir: string, postgres: PostgresServer): Promise<DevApp> {
  const { stdout } = await run(
    process.execPath,
    [join(build.folder, 'cli.js'), 'apps', 'create', '--name', 'bench', '--account', 'bench'],
    { env: { PATH: process.env['PATH'], DATA_DIR: dataDir, ...databaseVariables(postgres) } },
  );
  return JSON.parse(stdout) as DevApp;
}

/**
 * Writes a script that starts nats-server with a monitoring port. The gateway itself would start it
 * without one.
 */
async function monitoredNats(folder: string, port: number): Promise<string> {
  const program = await findNatsServer(undefined, process.env['PATH'] ?? '');
  const path = join(folder, 'nats-server');
  await writeFile(path, `#!/bin/sh\nexec '${program}' "$@" --http_port ${port}\n`, { mode: 0o755 });
  return path;
}

async function readCpu(
  pid: number,
  probeFolder: string,
  postgres: PostgresServer | undefined,
): Promise<Usage['cpu']> {
  const seconds = Object.fromEntries(cpuParts.map((part) => [part, 0])) as Record<CpuPart, number>;
  for (const process of processesUnder(pid)) {
    const used = process.stat.used / ticksPerSecond;
    if (process.pid === pid) seconds['gateway: V8 and libuv'] += used;
    else if (commandOf(process.pid).includes('nats-server')) seconds['nats-server'] += used;
  }
  for (const [thread, used] of await threadsByScript(pid, probeFolder)) {
    const part = partOfThread(thread);
    seconds[part] += used;
    seconds['gateway: V8 and libuv'] -= used;
  }
  for (const { stat } of postgres === undefined ? [] : processesUnder(postgres.pid)) {
    seconds.PostgreSQL += (stat.used + stat.usedByEnded) / ticksPerSecond;
  }
  return seconds;
}

async function threadsByScript(
  pid: number,
  probeFolder: string,
): Promise<readonly (readonly [script: string, seconds: number])[]> {
  const used = threadSeconds(pid);
  const scripts = await threadScripts(probeFolder);
  return [...scripts].map(([thread, script]) => [script, used.get(thread) ?? 0]);
}

async function readWakes(
  pid: number,
  probeFolder: string,
  postgres: PostgresServer | undefined,
): Promise<Usage['wakes']> {
  const wakes = Object.fromEntries(cpuParts.map((part) => [part, 0])) as Record<CpuPart, number>;
  const scripts = await threadScripts(probeFolder);
  const add = (process: number, partOf: (thread: number) => CpuPart): void => {
    for (const [thread, count] of threadWakes(process)) wakes[partOf(thread)] += count;
  };
  for (const process of processesUnder(pid)) {
    if (process.pid === pid)
      add(pid, (thread) => {
        const script = scripts.get(thread);
        return script === undefined ? 'gateway: V8 and libuv' : partOfThread(script);
      });
    else if (commandOf(process.pid).includes('nats-server')) add(process.pid, () => 'nats-server');
  }
  for (const process of postgres === undefined ? [] : processesUnder(postgres.pid))
    add(process.pid, () => 'PostgreSQL');
  return wakes;
}

async function threadScripts(probeFolder: string): Promise<ReadonlyMap<number, string>> {
  const names = (await readdir(probeFolder)).filter((name) => name.startsWith('thread-'));
  const scripts = names.map(async (name) => {
    const script = await readFile(join(probeFolder, name), 'utf8');
    return [Number(name.slice('thread-'.length)), script] as const;
  });
  return new Map(await Promise.all(scripts));
}

function groupedThreads(
  scripts: ReadonlyMap<number, string>,
): ReadonlyMap<CpuPart, readonly number[]> {
  const threads = new Map<CpuPart, number[]>();
  for (const [thread, script] of scripts) {
    const part = partOfThread(script);
    threads.set(part, [...(threads.get(part) ?? []), thread]);
  }
  return threads;
}

async function profileParts(
  probeFolder: string,
  work: () => Promise<unknown>,
): Promise<ReadonlyMap<CpuPart, Spent>> {
  const threads = groupedThreads(await threadScripts(probeFolder));
  const spent = await profileThreads(probeFolder, work);
  return new Map(
    [...threads].map(([part, ids]) => {
      return [part, sumOf(ids.flatMap((thread) => spent.get(thread) ?? []))] as const;
    }),
  );
}

function partOfThread(script: string): CpuPart {
  if (script.startsWith('main.')) return 'gateway: main thread';
  if (script.startsWith('media-worker.')) return 'gateway: media workers';
  if (script.startsWith('engine-worker.')) return 'gateway: SIP engine';
  return script.startsWith('pglite-worker.') ? 'gateway: PGlite' : 'gateway: other workers';
}

type Probed = {
  readonly statements: Readonly<Record<string, number>>;
  readonly framesToDrachtio: number;
  readonly framesFromDrachtio: number;
};

async function readCounts(
  pid: number,
  probeFolder: string,
  monitorPort: number,
): Promise<Pick<Usage, 'counts' | 'statements'>> {
  const probed = JSON.parse(await text(connect(join(probeFolder, 'counts')))) as Probed;
  const answer = await fetch(`http://127.0.0.1:${monitorPort}/varz`);
  const nats = (await answer.json()) as { readonly in_msgs: number; readonly out_msgs: number };
  const io = await readFile(`/proc/${pid}/io`, 'utf8');
  const [read = 0, written = 0] = [/syscr: (\d+)/, /syscw: (\d+)/].map((line) =>
    Number(line.exec(io)?.[1] ?? 0),
  );
  const statements = Object.values(probed.statements).reduce((sum, count) => sum + count, 0);
  const counts = {
    'messages to NATS (in_msgs of /varz)': nats.in_msgs,
    'messages from NATS (out_msgs of /varz)': nats.out_msgs,
    'statements to SQL (queries of the pg clients)': statements,
    'frames to drachtio': probed.framesToDrachtio,
    'frames from drachtio': probed.framesFromDrachtio,
    'read and write calls (/proc/PID/io)': read + written,
  };
  return { counts, statements: probed.statements };
}
