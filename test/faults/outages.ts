// Makes PostgreSQL unavailable several times while people talk, and counts the calls that are hung
// up. There are three kinds of outage. `cut` breaks and refuses its connections, as a restart does.
// `freeze` stops its processes, as a paused machine does. `read-only` refuses writes, as an
// unfinished fail-over does.

import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { type Cluster, startCluster } from '../support/cluster.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import type { PostgresServer } from '../support/postgres-server.ts';
import { processesUnder } from '../support/process-tree.ts';
import { layDatabaseWire, through, type Wire } from '../support/wire.ts';
import { randomFrom } from './random.ts';
import { appCreatorOf, fill, type Harm, isUp, removeEnded, type Talking } from './talking.ts';

export type OutageOptions = {
  readonly seed: number;
  readonly outages: number;
  readonly gateways: number;
  readonly callsEach: number;
  readonly postgres: PostgresServer;
  /** The URL of an empty database on `postgres`. */
  readonly databaseUrl: string;
  /** The folder of another build. Default: this tree. */
  readonly build?: string;
  readonly log: (line: string) => void;
};

export type OutageReport = Harm & { readonly outages: number };

const kinds = ['cut', 'freeze', 'read-only'] as const;
type Kind = (typeof kinds)[number];
type World = OutageOptions & { readonly cluster: Cluster; readonly wire: Wire };

/** The length of an outage. It exceeds the default lease, which is used here. */
const outageMs = { from: 9_000, to: 20_000 } as const;
/**
 * How long to wait after an outage. If a node wrongly declares others lost, it hangs up their calls
 * within one lease and one sweep.
 */
const aftermathMs = 14_000;

export async function runOutages(options: OutageOptions): Promise<OutageReport> {
  const wire = await layDatabaseWire(options.databaseUrl);
  try {
    await using cluster = await startCluster({
      databaseUrl: options.databaseUrl,
      createApp: appCreatorOf(options.build),
    });
    return await suffer({ ...options, cluster, wire });
  } finally {
    await wire.close();
  }
}

async function suffer(world: World): Promise<OutageReport> {
  const { cluster, log, databaseUrl, wire, build } = world;
  const talkers: Talking = {
    ...{ cluster, gateways: world.gateways, people: world.gateways * world.callsEach },
    variables: { DATABASE_URL: through(databaseUrl, wire) },
    ...(build !== undefined && { build }),
  };
  const random = randomFrom(world.seed);
  const gateways = new Map<string, GatewayProcess>();
  const report = { outages: 0, harmful: 0, talking: 0, hungUp: 0, ended: 0 };
  for (let index = 0; index < world.outages; index += 1) {
    await fill(talkers, gateways);
    const kind = kinds[index % kinds.length] ?? 'cut';
    const ms = Math.round(random.between(outageMs.from, outageMs.to));
    const talking = cluster.farEnd.calls.filter(isUp);
    await begin(kind, world);
    await pause(ms);
    await end(kind, world);
    await pause(aftermathMs);
    const hungUp = talking.filter((call) => !isUp(call)).length;
    const ended = removeEnded(gateways);
    report.outages += 1;
    report.harmful += hungUp === 0 ? 0 : 1;
    report.talking += talking.length;
    report.hungUp += hungUp;
    report.ended += ended;
    log(
      `${index + 1}: ${kind} for ${(ms / 1_000).toFixed(1)} s, ${hungUp} of ${talking.length} hung up, ${ended} gateways ended`,
    );
  }
  return report;
}

async function begin(kind: Kind, { wire, postgres, databaseUrl }: World): Promise<void> {
  if (kind === 'cut') wire.cut();
  else if (kind === 'freeze') signal(postgres, 'SIGSTOP');
  else await readOnly(databaseUrl, true);
}

async function end(kind: Kind, { wire, postgres, databaseUrl }: World): Promise<void> {
  if (kind === 'cut') wire.heal();
  else if (kind === 'freeze') signal(postgres, 'SIGCONT');
  else await readOnly(databaseUrl, false);
}

/**
 * Sends a signal to all processes of the server, but not to their parent shell. That shell ends
 * them when this process ends.
 */
function signal(postgres: PostgresServer, name: 'SIGSTOP' | 'SIGCONT'): void {
  for (const { pid } of processesUnder(postgres.pid)) {
    if (pid !== postgres.pid) process.kill(pid, name);
  }
}

async function readOnly(databaseUrl: string, isOn: boolean): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`alter system set default_transaction_read_only = ${isOn ? 'on' : 'off'}`);
    await client.query('select pg_reload_conf()');
  } finally {
    await client.end();
  }
}
