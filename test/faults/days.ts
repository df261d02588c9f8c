// Lets days pass within minutes, on PostgreSQL with two gateways and on PGlite with one, while
// people talk. The wall clock of the gateways jumps forward step by step, with calls up that ring
// or talk across the jump and across midnight UTC. Partitions of days must be made ahead and
// dropped when their retention has passed, and no call, event or notification may be lost, repeated
// or kept.
//
// Each jump waits until nothing is being notified. A jump in the middle of an attempt would end the
// attempt's lease, and another gateway would repeat the attempt, as it must.

import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { type Day, dayOf, listDays, restOf, tablesByDay } from '../../src/store/days.ts';
import { startCluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type ShiftedClock, startShiftedClock } from '../support/shifted-clock.ts';
import { DayWorld, type PlacedCall } from './day-world.ts';
import { violations } from './invariants.ts';
import { eventsOnStream } from './stream-dump.ts';

export type DaysOptions = {
  /** How many hours pass. */
  readonly hours: number;
  /** How long the run takes, without starting and stopping. */
  readonly seconds: number;
  /** The URL of an empty database. */
  readonly databaseUrl: string;
  readonly log: (line: string) => void;
};

export type DaysReport = {
  readonly database: DayWorld['kind'];
  readonly gateways: number;
  readonly hours: number;
  readonly midnights: number;
  readonly calls: number;
  /** Calls that were up at a midnight UTC. */
  readonly acrossMidnight: number;
  readonly forgottenCalls: number;
  readonly notifications: number;
  readonly events: number;
  /** Days whose partitions were dropped. */
  readonly daysDropped: number;
  readonly violations: readonly string[];
};

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const retentionHours = 6;
/** Gateways look at the clock every 30 s. This leaves time for the purge itself. */
const stepMs = 36_000;
/** A purge may have run up to an hour before a call's retention passed. */
const purgeSlackMs = hourMs;

type Run = DaysOptions & { readonly clock: ShiftedClock; readonly jumpMs: number };

export async function runDays(options: DaysOptions): Promise<readonly DaysReport[]> {
  await using clock = await startShiftedClock();
  const variables = {
    ...clock.variables,
    EVENT_RETENTION_DAYS: String(retentionHours / 24),
  };
  await using postgres = await startCluster({ databaseUrl: options.databaseUrl, variables });
  await using pglite = await startCluster({ variables });
  const worlds = [
    new DayWorld('postgres', postgres, [
      await postgres.startNode('node-1'),
      await postgres.startNode('node-2'),
    ]),
    new DayWorld('pglite', pglite, [await pglite.startNode('laptop')]),
  ];
  const steps = Math.max(1, Math.round((options.seconds * 1_000) / stepMs));
  const run = { ...options, clock, jumpMs: (options.hours * hourMs) / steps };
  const firstDay = dayOf(new Date());
  await pass(run, worlds, steps);
  return await Promise.all(worlds.map((world) => reportOf(run, world, firstDay)));
}

type Standing = { readonly world: DayWorld; readonly calls: readonly PlacedCall[] };

/** Lets the steps pass. A call that is placed in one step is ended in the next. */
async function pass(run: Run, worlds: readonly DayWorld[], steps: number): Promise<void> {
  let standing: readonly Standing[] = [];
  // These calls outlive their day's retention.
  let sleepers: readonly Standing[] = [];
  let sleepUntil = Number.POSITIVE_INFINITY;
  for (let step = 1; step <= steps; step += 1) {
    const endsAt = performance.now() + stepMs;
    const isLastOfDay = dayOf(new Date(Date.now() + run.jumpMs)) !== dayOf(new Date());
    await signIn(worlds);
    if (sleepers.length === 0 && isLastOfDay) {
      sleepers = await stand(worlds, 2);
      sleepUntil = Date.now() + 2 * run.jumpMs + retentionHours * hourMs;
    }
    const next = await oneStep(worlds, standing);
    await untilQuiet(run);
    await run.clock.forward(run.jumpMs);
    await signIn(worlds);
    standing = next;
    if (Date.now() > sleepUntil) {
      for (const { world, calls } of sleepers) await world.end(calls);
      sleepUntil = Number.POSITIVE_INFINITY;
    }
    await pause(Math.max(0, endsAt - performance.now()));
    await look(run, worlds);
    run.log(`${step} of ${steps}: ${new Date().toISOString()}, ${upIn(worlds)} calls up`);
  }
  for (const { world, calls } of [...standing, ...sleepers]) {
    await world.end(calls.filter(({ endedAt }) => endedAt === undefined));
  }
}

async function signIn(worlds: readonly DayWorld[]): Promise<void> {
  for (const world of worlds) await world.signIn();
}

const upIn = (worlds: readonly DayWorld[]): number =>
  worlds.reduce((sum, { cluster }) => sum + cluster.farEnd.up, 0);

/** Places calls that stay, and waits until their answers are notified. */
async function stand(worlds: readonly DayWorld[], count: number): Promise<readonly Standing[]> {
  const placed: Standing[] = [];
  for (const world of worlds) placed.push({ world, calls: await world.place(count, 'stay') });
  for (const { world, calls } of placed) await world.untilAnswered(calls);
  return placed;
}

/**
 * Waits until no notification is owed. Only on PostgreSQL, another gateway could repeat one.
 */
async function untilQuiet({ databaseUrl }: Run): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const owed = () => client.query('select from notification_lanes');
    await eventually(async () => (await owed()).rowCount === 0, 'no notification is owed');
  } finally {
    await client.end();
  }
}

/**
 * Ends the calls of the last step, and places new ones: short ones, which end now, and others,
 * which talk or ring during the jump. Returns those.
 */
async function oneStep(
  worlds: readonly DayWorld[],
  standing: readonly Standing[],
): Promise<readonly Standing[]> {
  for (const { world, calls } of standing) await world.end(calls);
  const talking = await stand(worlds, 4);
  const short: Standing[] = [];
  for (const world of worlds) {
    const calls = [...(await world.place(6, 'talk', 10)), ...(await world.place(2, 'busy'))];
    short.push({ world, calls });
  }
  for (const { world, calls } of short) await world.untilEnded(calls);
  const ringing: Standing[] = [];
  for (const world of worlds) {
    ringing.push({ world, calls: await world.place(2, 'late-stay', 99) });
  }
  for (const { world, calls } of ringing) await world.untilRinging(calls);
  return [...talking, ...ringing];
}

/** Checks at the end of a step what exists, and what doesn't any more. */
async function look(run: Run, worlds: readonly DayWorld[]): Promise<void> {
  for (const world of worlds) {
    for (const call of world.calls) await lookAt(run, world, call);
    // No other process can read the embedded database while its gateway runs.
    if (world.kind === 'postgres') await lookAtDays(run, world);
  }
}

async function lookAt({ jumpMs }: Run, world: DayWorld, call: PlacedCall): Promise<void> {
  if (call.isForgotten === true) return;
  const ageMs = ageOf(call);
  const mustExist = isKept(call);
  // Until the next purge, the call may or may not exist.
  if (!mustExist && ageMs < retentionHours * hourMs + jumpMs + purgeSlackMs) return;
  const status = await world.statusOf(call);
  call.isForgotten = !mustExist;
  if (status === (mustExist ? 200 : 404)) return;
  const age = `${(ageMs / hourMs).toFixed(1)} h after its end`;
  world.problems.push(`${call.callId}: the API answers with ${status}, ${age}`);
}

/** Returns how long ago the call ended. */
const ageOf = ({ endedAt }: PlacedCall): number =>
  endedAt === undefined ? 0 : Date.now() - endedAt;
const isKept = (call: PlacedCall): boolean => ageOf(call) < retentionHours * hourMs;

/** Checks the partitions of days. Returns the days that have partitions. */
async function lookAtDays(run: Run, world: DayWorld): Promise<ReadonlySet<Day>> {
  const database = await openDatabase({
    ...{ dataDir: world.nodes[0]?.dataDir ?? '', logger: silentLogger },
    ...(world.kind === 'postgres' && { databaseUrl: run.databaseUrl }),
  });
  try {
    const days = await listDays(database.pool);
    for (const table of tablesByDay) {
      const existing = new Set(days.filter((each) => each.table === table).map(({ day }) => day));
      world.problems.push(...wrongDays(run, world, existing).map((what) => `${table}: ${what}`));
      const { rowCount } = await database.pool.query(`select from ${restOf(table)}`);
      if (rowCount !== 0) world.problems.push(`${table}: ${rowCount} rows in no day's partition`);
    }
    return new Set(days.map(({ day }) => day));
  } finally {
    await database.close();
  }
}

/**
 * Returns what is wrong with a table's days: it needs those of today and of the next two days, and
 * keeps those of a day until its calls are deleted.
 */
function wrongDays({ jumpMs }: Run, { calls }: DayWorld, days: ReadonlySet<Day>): string[] {
  const ahead = [0, 1, 2].map((count) => dayOf(new Date(Date.now() + count * dayMs)));
  const daysOf = (some: readonly PlacedCall[]): readonly Day[] =>
    some.map(({ placedAt }) => dayOf(new Date(placedAt)));
  const needed = new Set([...ahead, ...daysOf(calls.filter(isKept))]);
  const allowed = new Set(daysOf(calls.filter(({ isForgotten }) => isForgotten !== true)));
  const oldest = dayOf(new Date(Date.now() - retentionHours * hourMs - jumpMs - purgeSlackMs));
  return [
    ...[...needed].filter((day) => !days.has(day)).map((day) => `no partition of ${day}`),
    ...[...days]
      .filter((day) => day < oldest && !allowed.has(day))
      .map((day) => `still has ${day}`),
  ];
}

async function reportOf(run: Run, world: DayWorld, firstDay: Day): Promise<DaysReport> {
  const { cluster, calls, kind, nodes } = world;
  const events = await eventsOnStream(cluster.nats.url);
  const received = cluster.receiver.accepted();
  const notifications = received.map(({ rawBody, body }) => ({ raw: rawBody, body }));
  const aftermath = {
    ...{ events, notifications, farCalls: cluster.farEnd.calls, startedAt: 0 },
    accepted: new Map(calls.map(({ number, callId }) => [number, callId])),
    ...{ refused: new Set<string>(), agents: new Map<string, string>() },
    ...{ engineDeaths: [], botConnections: [], faults: [] },
  };
  for (const node of nodes) await node.terminate();
  const left = await lookAtDays(run, world);
  const passed = daysFrom(firstDay, dayOf(new Date()));
  const logs = nodes.map((node) => node.output()).join('');
  return {
    ...{ database: kind, gateways: nodes.length, hours: run.hours, midnights: passed.length - 1 },
    calls: calls.length,
    acrossMidnight: calls.filter(isAcrossMidnight).length,
    forgottenCalls: calls.filter(({ isForgotten }) => isForgotten === true).length,
    ...{ notifications: notifications.length, events: events.length },
    daysDropped: passed.filter((day) => !left.has(day)).length,
    violations: [
      ...world.problems,
      ...violations(aftermath),
      ...repeated(events.map(({ event }) => event.id)).map((id) => `${id}: twice on the stream`),
      ...repeated(notifications.map(({ body }) => body.eventId)).map(
        (id) => `${id}: twice notified`,
      ),
      ...(logs.match(/.*a run of background work failed.*/g) ?? []),
    ],
  };
}

function daysFrom(first: Day, last: Day): readonly Day[] {
  const days: Day[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += dayMs) {
    days.push(dayOf(new Date(at)));
  }
  return days;
}

function isAcrossMidnight({ placedAt, endedAt = placedAt }: PlacedCall): boolean {
  return dayOf(new Date(placedAt)) !== dayOf(new Date(endedAt));
}

function repeated(ids: readonly string[]): readonly string[] {
  const known = new Set<string>();
  return ids.filter((id) => known.size === known.add(id).size);
}
