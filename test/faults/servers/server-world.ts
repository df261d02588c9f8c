// Two gateways with the servers that production has: PostgreSQL with a synchronous standby behind
// HAProxy, three NATS servers, and a SIP engine. Each gateway reaches each server over a wire.
// PostgreSQL and NATS keep their data on small disks, if this process may mount them.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cluster, startCluster } from '../../support/cluster.ts';
import type { Dialer } from '../../support/dialer-client.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { type NatsCluster, startNatsCluster } from '../../support/nats-cluster.ts';
import { type PostgresPair, startPostgresPair } from '../../support/postgres-pair.ts';
import { layDatabaseWire, layWire, through, type Wire } from '../../support/wire.ts';
import type { EngineDeath, Fault } from '../aftermath.ts';
import { FaultyBots } from '../faulty-bots.ts';
import type { Random } from '../random.ts';
import { startRecogniser } from '../recogniser.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

export type Member = {
  readonly name: 'a' | 'b';
  readonly wires: {
    readonly database: Wire;
    readonly engine: Wire;
    /** One per NATS server. */
    readonly nats: readonly Wire[];
  };
  gateway: GatewayProcess | undefined;
};

export type SmallDisks = {
  readonly postgres: readonly [SmallDisk, SmallDisk];
  readonly nats: readonly SmallDisk[];
};

export type ServerWorld = AsyncDisposable & {
  readonly cluster: Cluster;
  readonly pair: PostgresPair;
  readonly nats: NatsCluster;
  readonly bots: FaultyBots;
  /** Undefined if this process may not mount file systems. */
  readonly disks: SmallDisks | undefined;
  readonly members: readonly [Member, Member];
  readonly startedAt: number;
  readonly faults: (Fault & { to?: number })[];
  readonly engineDeaths: (EngineDeath & { backAt?: number })[];
  /** Gateways that exited although the test did not end them. */
  readonly exits: { readonly name: Member['name']; readonly at: number; readonly output: string }[];
  anyDialer(random: Random): Dialer | undefined;
  /** Starts the gateway, unless it runs. */
  readonly revive: (member: Member) => Promise<void>;
  kill(member: Member): Promise<void>;
  readonly log: (line: string) => void;
  writeLogs(folder: string): Promise<void>;
};

export type ServerWorldOptions = {
  readonly log: (line: string) => void;
  readonly logLevel: string;
};

export async function startServerWorld(options: ServerWorldOptions): Promise<ServerWorld> {
  const cleanups: (() => unknown)[] = [];
  const dispose = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    return await build(options, cleanups, dispose);
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function build(
  { log, logLevel }: ServerWorldOptions,
  cleanups: (() => unknown)[],
  dispose: () => Promise<void>,
): Promise<ServerWorld> {
  const disks = await mountDisks();
  cleanups.push(() =>
    Promise.all([...(disks?.postgres ?? []), ...(disks?.nats ?? [])].map((disk) => disk.remove())),
  );
  const pair = await startPostgresPair(
    disks && { parents: [disks.postgres[0].folder, disks.postgres[1].folder] },
  );
  cleanups.push(() => pair.stop());
  const nats = await startNatsCluster(
    disks && {
      storeFolders: disks.nats.map(({ folder }) => folder),
      maxFileStoreBytes: 300_000_000,
    },
  );
  cleanups.push(() => nats[Symbol.asyncDispose]());
  const recogniser = await startRecogniser();
  cleanups.push(() => recogniser[Symbol.asyncDispose]());
  const bots = await FaultyBots.start();
  cleanups.push(() => bots[Symbol.asyncDispose]());
  const cluster = await startCluster({
    ...{ databaseUrl: pair.url, natsUrl: nats.url, voices: true },
    variables: {
      ...{ STT_PROVIDERS_FILE: recogniser.providersFile, LOG_LEVEL: logLevel },
      NATS_REPLICAS: String(nats.nodes.length),
    },
  });
  cleanups.push(() => cluster[Symbol.asyncDispose]());
  const members = [await makeMember('a'), await makeMember('b')] as const;
  const startedAt = Date.now();
  const exits: ServerWorld['exits'] = [];
  const outputs: { readonly name: string; readonly gateway: GatewayProcess }[] = [];
  const isEnding = new Set<GatewayProcess>();
  cleanups.push(() => {
    for (const { gateway } of members) if (gateway !== undefined) isEnding.add(gateway);
  });

  async function makeMember(name: Member['name']): Promise<Member> {
    const wires = {
      database: await layDatabaseWire(pair.url),
      engine: await layWire({ host: '127.0.0.1', port: Number(new URL(cluster.engine.url).port) }),
      nats: await Promise.all(nats.nodes.map(({ port }) => layWire({ host: '127.0.0.1', port }))),
    };
    cleanups.push(() =>
      Promise.all([wires.database, wires.engine, ...wires.nats].map((wire) => wire.close())),
    );
    return { name, wires, gateway: undefined };
  }

  const revive = async (member: Member): Promise<void> => {
    const { child } = member.gateway ?? {};
    if (child !== undefined && child.exitCode === null && child.signalCode === null) return;
    member.gateway = undefined;
    const { wires, name } = member;
    const urls = nats.nodes.map(({ url }, index) => {
      const wire = wires.nats[index];
      return wire === undefined ? url : through(url, wire);
    });
    const gateway = await cluster.startNode(name, {
      DATABASE_URL: through(pair.url, wires.database),
      NATS_URL: urls.join(','),
      DRACHTIO_URL: through(cluster.engine.url, wires.engine),
    });
    gateway.child.once('exit', (code) => {
      if (isEnding.has(gateway)) return;
      exits.push({ name, at: Date.now(), output: gateway.output().slice(-1_500) });
      log(`gateway ${name} exited with ${code}`);
    });
    outputs.push({ name, gateway });
    member.gateway = gateway;
  };
  for (const member of members) await revive(member);
  return {
    ...{ cluster, pair, nats, bots, disks, members, startedAt, exits, revive },
    faults: [],
    engineDeaths: [],
    anyDialer: (random) => {
      const up = members.flatMap(({ gateway }) => gateway ?? []);
      return up[random.between(0, up.length - 1)]?.dialer;
    },
    kill: async ({ gateway }) => {
      if (gateway === undefined) return;
      isEnding.add(gateway);
      await gateway.kill();
    },
    log: (line) => log(`${((Date.now() - startedAt) / 1_000).toFixed(1)} s  ${line}`),
    writeLogs: async (folder) => {
      await mkdir(folder, { recursive: true });
      for (const [index, { name, gateway }] of outputs.entries()) {
        await writeFile(join(folder, `${index + 1}-${name}.log`), gateway.output());
      }
    },
    [Symbol.asyncDispose]: dispose,
  };
}

const natsServers = 3;

/** Mounts a disk for each server, or none. */
async function mountDisks(): Promise<SmallDisks | undefined> {
  const disks: SmallDisk[] = [];
  for (let count = 0; count < 2 + natsServers; count += 1) {
    const disk = await mountSmallDisk();
    if (disk === undefined) return undefined;
    disks.push(disk);
  }
  const [one, two, ...nats] = disks;
  return one && two && { postgres: [one, two], nats };
}
