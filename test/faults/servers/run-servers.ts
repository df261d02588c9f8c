// The storm of the servers under the gateways. One fault after the other hits PostgreSQL, NATS, the
// SIP engine, the carrier or the network, while people talk, phones ring and clients send requests.
// After each fault we count who was disconnected. At the end we check the invariants of all storms.

import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'pg';
import type { FarCall } from '../../support/far-end.ts';
import { violations } from '../invariants.ts';
import { randomFrom } from '../random.ts';
import { leftovers, oneSecondOfSilence, untilNotified } from '../settling.ts';
import { knownWithinMs } from '../shared-faults.ts';
import { eventsOnStream } from '../stream-dump.ts';
import { isUp } from '../talking.ts';
import { Traffic } from '../traffic.ts';
import { stormSound } from '../wishes.ts';
import { catalogue, drawScript, type ServerFault } from './catalogue.ts';
import { describeFault, type FaultReport, type Ringing } from './fault-report.ts';
import type { Exit, MemberName } from './members.ts';
import { Observations } from './observations.ts';
import { Population, type Ringer, type Talker, type TalkerKind } from './population.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';

export type ServersOptions = {
  readonly seed: number;
  readonly seconds: number;
  readonly callsPerSecond: number;
  /** Runs these faults in this order. Default: the seed draws them. */
  readonly faults?: readonly string[];
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

type Storm = {
  readonly world: ServerWorld;
  readonly population: Population;
  readonly observations: Observations;
  readonly traffic: Traffic;
};

export async function runServers(options: ServersOptions): Promise<ServersReport> {
  const { log, logFolder, seed } = options;
  await using world = await startServerWorld({
    log,
    logLevel: logFolder === undefined ? 'warn' : 'info',
  });
  try {
    await world.anyDialer(randomFrom(0))?.addSound(stormSound, oneSecondOfSilence());
    const traffic = new Traffic(world, randomFrom(seed + 1), options.callsPerSecond, shortCalls);
    const storm = {
      ...{ world, traffic, population: new Population(world) },
      observations: new Observations(world),
    };
    const { observations } = storm;
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
    return await settle(storm, reports, broken, log);
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

async function suffer(
  fault: ServerFault,
  { world, population, observations }: Storm,
): Promise<{ readonly report: FaultReport; readonly problems: readonly string[] }> {
  await reviveAll(world);
  const talkers = await population.fill();
  const owners = await ownersOf(world);
  observations.aimAt(talkers, owners);
  const exitedBefore = exitsOf(world).length;
  const ringers = await population.ring(fault.seconds);
  world.log(`${fault.name} begins`);
  const from = Date.now();
  const { delaysHangUpMs = 0 } = fault;
  const hidden: ServerWorld['faults'][number] = { what: fault.name, from, delaysHangUpMs };
  if (fault.hidesEnds) world.faults.push(hidden);
  const { end, repair } = await fault.begin(world);
  await pause(fault.seconds * 1_000);
  await end();
  const to = Date.now();
  world.log(`${fault.name} ends after ${((to - from) / 1_000).toFixed(1)} s`);
  await repair?.();
  await reviveAll(world);
  await pause(fault.settleSeconds * 1_000);
  const exited = exitsOf(world).slice(exitedBefore);
  hidden.to = Date.now() + knownWithinMs;
  const lost = population.disconnected(talkers);
  const phones = population.phonesOf(ringers);
  const report: FaultReport = {
    fault: fault.name,
    span: { from, to, until: Date.now() },
    people: countPeople(talkers, lost),
    lastLostMs: lost.length === 0 ? undefined : Math.max(...population.endsOf(lost)) - from,
    answeredDuring: ringing(phones.filter(({ phone }) => pickedUpBetween(phone, from, to))),
    answeredAfter: ringing(phones.filter(({ phone }) => !pickedUpBetween(phone, from, to))),
    gatewaysExited: exited.length,
  };
  await population.hangUp(ringers.map(({ callId }) => callId));
  const unexpected = lost.filter(
    ({ callId }) =>
      fault.mayDisconnect === 'nobody' ||
      (fault.mayDisconnect !== 'everybody' && owners.get(callId) !== fault.mayDisconnect),
  );
  for (const { kind, callId } of lost) {
    world.log(`${fault.name} disconnected ${kind} ${callId} of ${owners.get(callId)}`);
  }
  return {
    report,
    problems: [
      ...unexpected.map(({ kind, callId }) => `${callId}: ${fault.name} disconnected it (${kind})`),
      ...exited.map(({ name, output }) => `${fault.name}: gateway ${name} exited: ${output}`),
    ],
  };
}

const exitsOf = ({ members }: ServerWorld): readonly Exit[] =>
  members.flatMap(({ exits }) => exits);

/** Starts the gateways that have exited, as a supervisor would. */
async function reviveAll({ members }: ServerWorld): Promise<void> {
  for (const member of members) await member.revive();
}

/** Returns the name of the gateway that owns each call. */
async function ownersOf({ pair }: ServerWorld): Promise<ReadonlyMap<string, MemberName>> {
  const rows = await pair.primary.query<{ callId: string; name: MemberName }>(
    `select c.call_id as "callId", n.node_id as name
     from calls c join nodes n on n.owner_id = c.owner_id where c.ended_at is null`,
  );
  return new Map(rows.map(({ callId, name }) => [callId, name]));
}

function countPeople(
  talkers: readonly Talker[],
  lost: readonly Talker[],
): Record<TalkerKind, { readonly up: number; readonly lost: number }> {
  const count = (kind: TalkerKind) => ({
    up: talkers.filter((talker) => talker.kind === kind).length,
    lost: lost.filter((talker) => talker.kind === kind).length,
  });
  return { plain: count('plain'), bot: count('bot'), bridged: count('bridged') };
}

const pickedUpBetween = ({ answeredAt }: FarCall, from: number, to: number): boolean =>
  answeredAt !== undefined && answeredAt >= from && answeredAt < to;

function ringing(phones: readonly { readonly ringer: Ringer; readonly phone: FarCall }[]): Ringing {
  const all = phones.map(({ phone }) => phone);
  const hungUp = all.filter(
    (phone) => phone.answeredAt !== undefined && phone.endedAt !== undefined,
  );
  return {
    phones: all.length,
    connected: all.filter(isUp).length,
    hungUp: hungUp.length,
    hungUpAfterMs: Math.max(
      0,
      ...hungUp.map((phone) => (phone.endedAt ?? 0) - (phone.answeredAt ?? 0)),
    ),
    unanswered: all.filter((phone) => phone.answeredAt === undefined).length,
  };
}

async function settle(
  { world, population, observations, traffic }: Storm,
  reports: readonly FaultReport[],
  broken: readonly string[],
  log: ServersOptions['log'],
): Promise<ServersReport> {
  await reviveAll(world);
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
      violations: [...broken, ...found, ...(await leftovers(pool))],
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
