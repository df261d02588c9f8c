// The storm of the servers under the gateways. One fault after the other hits PostgreSQL, NATS, the
// SIP engine, the carrier or the network, while people talk, phones ring and clients send requests.
// After each fault we count who was disconnected. At the end we check the invariants of all storms.

import { Pool } from 'pg';
import { violations } from '../invariants.ts';
import { randomFrom } from '../random.ts';
import { leftovers, oneSecondOfSilence, untilNotified } from '../settling.ts';
import { eventsOnStream } from '../stream-dump.ts';
import { Traffic } from '../traffic.ts';
import { stormSound } from '../wishes.ts';
import { catalogue, drawScript } from './catalogue.ts';
import { describeFault, type FaultReport } from './fault-report.ts';
import { Observations } from './observations.ts';
import { Population } from './population.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';
import { reviveAll, type Storm, suffer } from './suffer.ts';

export type ServersOptions = {
  readonly seed: number;
  readonly seconds: number;
  readonly callsPerSecond: number;
  /** Runs these faults in this order. Default: the seed draws them. */
  readonly faults?: readonly string[];
  /** The program of a drachtio-server to use as SIP engine. Default: the embedded engine. */
  readonly drachtio?: string | undefined;
  readonly log: (line: string) => void;
  /** The folder for the logs of the gateways. Default: no logs are written. */
  readonly logFolder?: string;
};

export type ServersReport = {
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
};

/** Calls other than those of the people who talk throughout are short. */
const shortCalls = { maxDurationMs: 8_000 };

export async function runServers(options: ServersOptions): Promise<ServersReport> {
  const { log, logFolder, seed, drachtio } = options;
  await using world = await startServerWorld({
    ...{ log, drachtio },
    logLevel: logFolder === undefined ? 'warn' : 'info',
  });
  try {
    await world.anyDialer(randomFrom(0))?.addSound(stormSound, oneSecondOfSilence());
    const traffic = new Traffic(world, randomFrom(seed + 1), options.callsPerSecond, shortCalls);
    const observations = new Observations(world);
    const storm = { world, observations, population: new Population(world) };
    traffic.start();
    observations.start();
    const reports: FaultReport[] = [];
    const broken: string[] = [];
    for (const fault of scriptOf(options, world)) {
      const { report, problems } = await suffer(fault, storm);
      reports.push(report);
      broken.push(...problems);
    }
    await traffic.stop();
    await observations.stop();
    return await settle(storm, traffic, { reports, broken, log });
  } finally {
    for (const member of world.members) {
      if (logFolder !== undefined) await member.writeLogs(logFolder);
    }
  }
}

function scriptOf({ faults, seed, seconds, log }: ServersOptions, world: ServerWorld) {
  const possible = catalogue.filter(({ needsDisks }) => needsDisks !== true || world.disks);
  const skipped = catalogue.filter((fault) => !possible.includes(fault)).map(({ name }) => name);
  if (skipped.length > 0) {
    log(`skipped, because only root may mount small disks: ${skipped.join(', ')}`);
  }
  if (faults === undefined) return drawScript(possible, randomFrom(seed), seconds);
  return faults.map((name) => {
    const fault = possible.find((one) => one.name === name);
    if (fault === undefined) {
      throw new Error(`no fault ${name}: ${possible.map((one) => one.name).join(', ')}`);
    }
    return fault;
  });
}

type Past = {
  readonly reports: readonly FaultReport[];
  readonly broken: readonly string[];
  readonly log: ServersOptions['log'];
};

/** Ends all calls, waits until nothing is owed, and checks the invariants. */
async function settle(
  { world, population, observations }: Storm,
  traffic: Traffic,
  { reports, broken, log }: Past,
): Promise<ServersReport> {
  await reviveAll(world);
  const vanished = population
    .vanished()
    .map(({ callId }) => `${callId}: it ended after all faults`);
  await traffic.settleDoubts();
  await population.hangUpAll();
  world.bots.calm();
  const pool = new Pool({ connectionString: world.pair.url, max: 1 });
  try {
    await untilNotified(world, traffic, pool, log);
    log(
      `offhook events repair: ${await world.cluster.offhook('events', 'repair', '--since', '2h')}`,
    );
    const events = await eventsOnStream(world.nats.url);
    const seen = { observations, dialOuts: traffic.answers, events };
    for (const line of reports.flatMap((report) => describeFault(report, seen))) log(line);
    const { farEnd, receiver } = world.cluster;
    const found = violations({
      accepted: new Map([...traffic.accepted, ...population.accepted]),
      refused: traffic.refused,
      farCalls: farEnd.calls,
      events,
      notifications: receiver.accepted().map(({ rawBody, body }) => ({ raw: rawBody, body })),
      startedAt: world.startedAt,
      engineDeaths: world.engineDeaths,
      botConnections: world.bots.connections,
      agents: new Map([...traffic.agents, ...population.agents]),
      faults: world.faults,
    });
    return {
      violations: [...broken, ...vanished, ...found, ...(await leftovers(pool))],
      counts: {
        ...traffic.counts(),
        ...countFaults(reports),
        invites: farEnd.calls.length,
        answered: farEnd.calls.filter(({ answeredAt }) => answeredAt !== undefined).length,
        eventsOnStream: events.length,
        notifications: receiver.accepted().length,
        lists: observations.lists.length,
        commands: observations.commands.length,
      },
    };
  } finally {
    await pool.end();
  }
}

function countFaults(reports: readonly FaultReport[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { fault } of reports) counts[fault] = (counts[fault] ?? 0) + 1;
  return counts;
}
