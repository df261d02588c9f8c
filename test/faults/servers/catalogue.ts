// The faults of the servers under the gateways: how each begins and ends, how long it lasts, and
// whom it may disconnect.

import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../random.ts';
import type { Member, MemberName } from './members.ts';
import type { ServerWorld } from './server-world.ts';

export type ServerFault = {
  readonly name: string;
  readonly seconds: number;
  /** How long the gateways may need afterwards, until nothing more can come of the fault. */
  readonly settleSeconds: number;
  /** The gateway whose people the fault may disconnect by design, or nobody, or everybody. */
  readonly mayDisconnect: 'nobody' | MemberName | 'everybody';
  /** Whether processes may be unable to know, or to store, that a far end has left its call. */
  readonly hidesEnds: boolean;
  /** How much later phones are hung up because of the fault. Default: not later. */
  readonly delaysHangUpMs?: number;
  readonly needsDisks?: boolean;
  /** Begins the fault, and returns how to end it. */
  begin(world: ServerWorld): Promise<FaultEnd>;
};

type FaultEnd = {
  /** Resolves when the server responds again. */
  readonly end: () => Promise<void>;
  /** What an operator does later, while the server responds. */
  readonly repair?: () => Promise<void>;
};

/** Two default leases, one for the grace after an outage, and the sweeps. */
const twoLeasesS = 20;
/** NATS elects new leaders and delivers what waited. */
const natsSettlesS = 10;

const failOvers = [5, 15, 40, 120, 300].map(
  (seconds): ServerFault => ({
    ...{ name: `fail-over-${seconds}`, seconds, settleSeconds: twoLeasesS },
    ...{ mayDisconnect: 'nobody', hidesEnds: true },
    begin: async ({ pair }) => {
      await pair.primary.kill();
      return {
        end: async () => {
          await pair.promote();
          await pair.untilReachable();
        },
        repair: () => pair.rebuild(),
      };
    },
  }),
);

const frozenPrimary: ServerFault = {
  ...{ name: 'postgres-frozen', seconds: 20, settleSeconds: twoLeasesS },
  ...{ mayDisconnect: 'nobody', hidesEnds: true },
  begin: async ({ pair }) => {
    pair.primary.freeze();
    return {
      end: async () => {
        pair.primary.thaw();
        await pair.untilReachable();
      },
    };
  },
};

const readOnlyPrimary: ServerFault = {
  ...{ name: 'postgres-read-only', seconds: 20, settleSeconds: twoLeasesS },
  ...{ mayDisconnect: 'nobody', hidesEnds: true },
  begin: async ({ pair }) => {
    await pair.setReadOnly(true);
    return {
      end: async () => {
        await pair.setReadOnly(false);
        await pair.untilReachable();
      },
    };
  },
};

/** How long tables can't grow before the WAL can't either. Then PostgreSQL stops itself. */
const untilWalIsFullMs = 10_000;

const fullDiskOfPostgres: ServerFault = {
  ...{ name: 'postgres-disk-full', seconds: 25, settleSeconds: twoLeasesS },
  ...{ mayDisconnect: 'nobody', hidesEnds: true, needsDisks: true },
  begin: async ({ pair, disks, log }) => {
    const { primary } = pair;
    const disk = disks?.postgres[primary.name === 'postgres-1' ? 0 : 1];
    await disk?.fill();
    const fillsWal = pause(untilWalIsFullMs).then(async () => {
      // The server needs a new segment, which it has no space for.
      for (let count = 0; count < 8 && primary.isRunning(); count += 1) {
        await primary.query('select pg_switch_wal()').catch(() => undefined);
        await primary.query('select txid_current()').catch(() => undefined);
      }
      log(`its WAL is full; PostgreSQL ${primary.isRunning() ? 'still runs' : 'has ended'}`);
    });
    return {
      end: async () => {
        await fillsWal;
        await disk?.empty();
        if (!primary.isRunning()) await primary.start();
        await pair.untilReachable();
      },
    };
  },
};

const natsKills = [0, 1, 2].map(
  (index): ServerFault => ({
    ...{ name: `nats-${index + 1}-killed`, seconds: 10, settleSeconds: natsSettlesS },
    ...{ mayDisconnect: 'nobody', hidesEnds: false },
    begin: async ({ nats }) => {
      await nats.nodes[index]?.kill();
      return {
        end: async () => {
          await nats.nodes[index]?.start();
          await nats.untilReady();
        },
      };
    },
  }),
);

const natsGone: ServerFault = {
  ...{ name: 'nats-all-killed', seconds: 20, settleSeconds: natsSettlesS },
  ...{ mayDisconnect: 'nobody', hidesEnds: false },
  begin: async ({ nats }) => {
    await Promise.all(nats.nodes.map((node) => node.kill()));
    return {
      end: async () => {
        await Promise.all(nats.nodes.map((node) => node.start()));
        await nats.untilReady();
      },
    };
  },
};

const fullDiskOfNats: ServerFault = {
  ...{ name: 'nats-disk-full', seconds: 25, settleSeconds: natsSettlesS },
  ...{ mayDisconnect: 'nobody', hidesEnds: false, needsDisks: true },
  begin: async ({ nats, disks }) => {
    await Promise.all(disks?.nats.map((disk) => disk.fill()) ?? []);
    return {
      end: async () => {
        await Promise.all(disks?.nats.map((disk) => disk.empty()) ?? []);
        // A nats-server whose disk was full needs a restart, and doesn't stop on SIGTERM.
        for (const node of nats.nodes) {
          await node.kill();
          await node.start();
        }
        await nats.untilReady();
      },
    };
  },
};

/** Longer than the default lease. */
const partitionS = 15;
/** Longer than the gateway needs to find out that a server is silent, and to leave it. */
const natsPartitionS = 30;

const partitions = (['a', 'b'] as const).flatMap((name): readonly ServerFault[] => {
  const from = ({ members }: ServerWorld): Member => members[name === 'a' ? 0 : 1];
  const spared = { mayDisconnect: 'nobody', hidesEnds: true } as const;
  return [
    {
      ...{ name: `${name}-without-postgres`, seconds: partitionS, settleSeconds: twoLeasesS },
      ...spared,
      begin: async (world) => {
        from(world).wires.database.stall();
        return { end: async () => from(world).wires.database.heal() };
      },
    },
    {
      ...{ name: `${name}-without-one-nats`, seconds: natsPartitionS, settleSeconds: natsSettlesS },
      ...spared,
      begin: async (world) => {
        from(world).wires.nats[0]?.stall();
        return { end: async () => from(world).wires.nats[0]?.heal() };
      },
    },
    {
      // After three seconds, the other gateway hangs up its people, a few each second.
      ...{ name: `${name}-without-engine`, seconds: partitionS, settleSeconds: twoLeasesS },
      ...{ mayDisconnect: name, hidesEnds: true, delaysHangUpMs: 5_000 },
      begin: async (world) => {
        from(world).wires.engine.cut();
        return { end: async () => from(world).wires.engine.heal() };
      },
    },
  ];
});

const gatewayKill: ServerFault = {
  ...{ name: 'gateway-killed', seconds: 5, settleSeconds: twoLeasesS },
  ...{ mayDisconnect: 'a', hidesEnds: true },
  begin: async ({ members: [member] }) => {
    await member.kill();
    return { end: () => member.revive() };
  },
};

const engineKill: ServerFault = {
  ...{ name: 'engine-killed', seconds: 5, settleSeconds: twoLeasesS },
  ...{ mayDisconnect: 'everybody', hidesEnds: true },
  begin: async ({ cluster, engineDeaths }) => {
    const death: ServerWorld['engineDeaths'][number] = { at: Date.now() };
    engineDeaths.push(death);
    await cluster.engine.kill();
    return {
      end: async () => {
        await cluster.engine.start();
        death.backAt = Date.now();
      },
    };
  },
};

const carrierAway: ServerFault = {
  ...{ name: 'carrier-away', seconds: 15, settleSeconds: twoLeasesS },
  ...{ mayDisconnect: 'nobody', hidesEnds: true },
  begin: async ({ cluster: { farEnd }, engineDeaths }) => {
    // As without an engine, no phone can be hung up.
    const death: ServerWorld['engineDeaths'][number] = { at: Date.now() };
    engineDeaths.push(death);
    farEnd.setAway(true);
    return {
      end: async () => {
        farEnd.setAway(false);
        death.backAt = Date.now();
      },
    };
  },
};

export const catalogue: readonly ServerFault[] = [
  ...failOvers,
  ...[frozenPrimary, readOnlyPrimary, fullDiskOfPostgres],
  ...natsKills,
  ...[natsGone, fullDiskOfNats],
  ...partitions,
  ...[gatewayKill, engineKill, carrierAway],
];

/** What each fault takes beside itself: filling up with people, and measuring. */
const overheadS = 5;

/** Draws an order of the faults, and leaves out those that no longer fit into `seconds`. */
export function drawScript(
  faults: readonly ServerFault[],
  random: Random,
  seconds: number,
): readonly ServerFault[] {
  const left = [...faults];
  const script: ServerFault[] = [];
  let usedS = 0;
  while (left.length > 0) {
    const [fault] = left.splice(random.between(0, left.length - 1), 1);
    if (fault === undefined) break;
    const takesS = fault.seconds + fault.settleSeconds + overheadS;
    if (usedS + takesS > seconds) continue;
    usedS += takesS;
    script.push(fault);
  }
  return script;
}
