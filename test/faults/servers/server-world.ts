// Two gateways with the servers that production has: PostgreSQL with a synchronous standby behind
// HAProxy, three NATS servers, and a SIP engine. The databases and the NATS servers keep their data
// on small disks, if this process may mount them.

import { type Cluster, startCluster } from '../../support/cluster.ts';
import type { Dialer } from '../../support/dialer-client.ts';
import { type NatsCluster, startNatsCluster } from '../../support/nats-cluster.ts';
import { type PostgresPair, startPostgresPair } from '../../support/postgres-pair.ts';
import type { EngineDeath, Fault } from '../aftermath.ts';
import { FaultyBots } from '../faulty-bots.ts';
import type { Random } from '../random.ts';
import { type Recogniser, startRecogniser } from '../recogniser.ts';
import { Member } from './members.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

type SmallDisks = {
  readonly postgres: readonly [SmallDisk, SmallDisk];
  readonly nats: readonly SmallDisk[];
};

type Servers = {
  /** Undefined if this process may not mount file systems. */
  readonly disks: SmallDisks | undefined;
  readonly pair: PostgresPair;
  readonly nats: NatsCluster;
  readonly bots: FaultyBots;
  readonly cluster: Cluster;
};

export type ServerWorld = AsyncDisposable &
  Servers & {
    readonly members: readonly [Member, Member];
    readonly startedAt: number;
    readonly faults: (Fault & { to?: number })[];
    readonly engineDeaths: (EngineDeath & { backAt?: number })[];
    anyDialer(random: Random): Dialer | undefined;
    /** Logs a line, with the seconds since the start. */
    readonly log: (line: string) => void;
  };

export type ServerWorldOptions = {
  readonly log: (line: string) => void;
  readonly logLevel: string;
  /** The program of a drachtio-server to use as SIP engine. Default: the embedded engine. */
  readonly drachtio?: string | undefined;
};

type Cleanups = (() => unknown)[];

export async function startServerWorld(options: ServerWorldOptions): Promise<ServerWorld> {
  const startedAt = Date.now();
  const log = (line: string): void =>
    options.log(`${((Date.now() - startedAt) / 1_000).toFixed(1)} s  ${line}`);
  const cleanups: Cleanups = [];
  const dispose = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    const servers = await startServers(options, cleanups);
    const members = await startMembers(servers, log, cleanups);
    return {
      ...servers,
      ...{ members, startedAt, log, faults: [], engineDeaths: [] },
      anyDialer: (random) => {
        const up = members.flatMap(({ gateway }) => gateway ?? []);
        return up[random.between(0, up.length - 1)]?.dialer;
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function startServers(
  { logLevel, drachtio }: ServerWorldOptions,
  cleanups: Cleanups,
): Promise<Servers> {
  const disks = await mountDisks(cleanups);
  const pair = await startPostgresPair(
    disks && { parents: [disks.postgres[0].folder, disks.postgres[1].folder] },
  );
  cleanups.push(() => pair.stop());
  const nats = await startNatsCluster(
    disks && { storeFolders: disks.nats.map(({ folder }) => folder), maxFileStoreBytes },
  );
  cleanups.push(() => nats[Symbol.asyncDispose]());
  const recogniser = await startRecogniser();
  cleanups.push(() => recogniser[Symbol.asyncDispose]());
  const bots = await FaultyBots.start();
  cleanups.push(() => bots[Symbol.asyncDispose]());
  const cluster = await startCluster({
    ...{ databaseUrl: pair.url, natsUrl: nats.url, voices: true, drachtio },
    variables: variablesOf(recogniser, nats, logLevel),
  });
  cleanups.push(() => cluster[Symbol.asyncDispose]());
  return { disks, pair, nats, bots, cluster };
}

/** Below the size of a small disk. */
const maxFileStoreBytes = 300_000_000;

const variablesOf = (
  { providersFile }: Recogniser,
  { nodes }: NatsCluster,
  logLevel: string,
): Readonly<Record<string, string>> => ({
  STT_PROVIDERS_FILE: providersFile,
  NATS_REPLICAS: String(nodes.length),
  LOG_LEVEL: logLevel,
});

async function startMembers(
  { cluster, pair, nats }: Servers,
  log: (line: string) => void,
  cleanups: Cleanups,
): Promise<readonly [Member, Member]> {
  const urls = {
    database: pair.url,
    engine: cluster.engine.url,
    nats: nats.nodes.map(({ url }) => url),
  };
  const start = async (name: Member['name']): Promise<Member> => {
    const member = await Member.create(name, { cluster, urls, log });
    cleanups.push(() => member[Symbol.asyncDispose]());
    await member.revive();
    return member;
  };
  const members = [await start('a'), await start('b')] as const;
  cleanups.push(() => Promise.all(members.map((member) => member.kill())));
  return members;
}

const natsServers = 3;

/** Mounts a disk for each server, or none. */
async function mountDisks(cleanups: Cleanups): Promise<SmallDisks | undefined> {
  const disks: SmallDisk[] = [];
  for (let count = 0; count < 2 + natsServers; count += 1) {
    const disk = await mountSmallDisk();
    if (disk === undefined) return undefined;
    cleanups.push(() => disk.remove());
    disks.push(disk);
  }
  const [one, two, ...nats] = disks;
  return one && two && { postgres: [one, two], nats };
}
