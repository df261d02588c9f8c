// The storm sends calls at a steady rate into a cluster of three nodes, while a seeded script
// kills, stops and cuts off its parts. Then all faults end, and the storm waits until the end of
// every accepted call has been delivered. Finally it checks the invariants.

import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'pg';
import { makeWav } from '../support/wav.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { violations } from './invariants.ts';
import { randomFrom } from './random.ts';
import { eventsOnStream } from './stream-dump.ts';
import { Traffic } from './traffic.ts';
import { stormSound } from './wishes.ts';

export type StormOptions = {
  readonly seed: number;
  readonly seconds: number;
  readonly callsPerSecond: number;
  /**
   * The time between the starts of two faults. A fault lasts for seconds, so this time determines
   * how many faults overlap.
   */
  readonly faultEveryMs: { readonly from: number; readonly to: number };
  /** The URL of an empty database. */
  readonly databaseUrl: string;
  readonly log: (line: string) => void;
  /** The folder for the logs of the nodes. Default: no logs are written. */
  readonly logFolder?: string;
};

export type StormReport = {
  readonly violations: readonly string[];
  /** Numbers for people to read: calls, faults by kind, redeliveries. */
  readonly counts: Readonly<Record<string, number>>;
};

/**
 * How long to wait after the faults. It exceeds every call, and every lease and retry that may
 * still be needed.
 */
const calmTimeoutMs = 120_000;
/** How long to wait for phones and bots that are still up. After this time nothing excuses them. */
const lastLookMs = 45_000;

export async function runStorm(options: StormOptions): Promise<StormReport> {
  const random = randomFrom(options.seed);
  await using world = await FaultyCluster.start(
    options.databaseUrl,
    options.logFolder === undefined ? 'warn' : 'info',
    options.log,
  );
  await world.anyDialer(randomFrom(0))?.addSound(stormSound, oneSecondOfSilence());
  const traffic = new Traffic(world, randomFrom(options.seed + 1), options.callsPerSecond);
  const deadline = performance.now() + options.seconds * 1_000;
  traffic.start();
  while (performance.now() < deadline) {
    await pause(random.between(options.faultEveryMs.from, options.faultEveryMs.to));
    world.fault(random);
  }
  await traffic.stop();
  await world.calm();
  await traffic.settleDoubts();
  const pool = new Pool({ connectionString: options.databaseUrl, max: 1 });
  try {
    await untilNotified(world, traffic, pool, options.log);
    logRepeatedByes(world, traffic, options.log);
    return await report(world, traffic, pool);
  } finally {
    await pool.end();
    if (options.logFolder !== undefined) await world.writeLogs(options.logFolder);
  }
}

const oneSecondOfSilence = (): Buffer => makeWav({ samples: [new Int16Array(8_000)] });

async function untilNotified(
  world: FaultyCluster,
  traffic: Traffic,
  pool: Pool,
  log: StormOptions['log'],
): Promise<void> {
  const started = performance.now();
  for (;;) {
    const { rows } = await pool.query<{ owed: number }>(
      `select ((select count(*) from calls where end_published_at is null)
        + (select count(*) from notification_lanes))::integer as owed`,
    );
    const owed = rows[0]?.owed ?? 0;
    const { up } = world.cluster.farEnd;
    const { open } = world.bots;
    const unnotified = traffic.unnotified();
    const waitedMs = performance.now() - started;
    if (owed + unnotified + up + open === 0) return;
    // Phones and bots that are still in a call violate an invariant. Stop waiting for them.
    if (owed + unnotified === 0 && waitedMs > lastLookMs) return;
    if (waitedMs > calmTimeoutMs) {
      log(`gave up waiting: ${owed} owed, ${unnotified} unnotified, ${up} up, ${open} bots open`);
      return;
    }
    await pause(200);
  }
}

async function report(world: FaultyCluster, traffic: Traffic, pool: Pool): Promise<StormReport> {
  const { farEnd, receiver, nats } = world.cluster;
  const events = await eventsOnStream(nats.url);
  const taken = receiver.accepted();
  const broken = violations({
    accepted: traffic.accepted,
    refused: traffic.refused,
    farCalls: farEnd.calls,
    events,
    notifications: taken.map(({ rawBody, body }) => ({ raw: rawBody, body })),
    startedAt: world.startedAt,
    engineDeaths: world.engineDeaths,
    botConnections: world.bots.connections,
    agents: traffic.agents,
    faults: world.faults,
  });
  const ids = new Set(taken.map(({ body }) => body.eventId));
  return {
    violations: [...broken, ...(await leftovers(pool))],
    counts: {
      ...traffic.counts(),
      ...world.counts(),
      invites: farEnd.calls.length,
      answered: farEnd.calls.filter((call) => call.answeredAt !== undefined).length,
      // If the sender of a BYE dies, its answer is lost. Another process then sends a second BYE,
      // which the phone answers with 481.
      hungUpAgain: farEnd.calls.filter(({ byes }) => byes.some(({ status }) => status === 481))
        .length,
      ...countsOf(
        events.map(({ event }) => event.type),
        [
          ...['transfer-answered', 'transfer-completed', 'transfer-failed'],
          ...['playback-started', 'playback-finished', 'stream-started'],
        ],
      ),
      messagesLeft: events.filter(({ event }) => event.data['outcome'] === 'voicemail-left').length,
      screened: events.filter(({ event }) => event.data['source'] === 'screening').length,
      agentsCalled: farEnd.calls.filter(({ number }) => traffic.agents.has(number)).length,
      eventsOnStream: events.length,
      botConnections: world.bots.connections.length,
      notifications: ids.size,
      deliveredAgain: taken.length - ids.size,
      refusedByReceiver: receiver.received.length - taken.length,
    },
  };
}

/**
 * Logs the calls whose phone got a repeated BYE, so that people can find the fault that lies
 * between the two BYEs.
 */
function logRepeatedByes(world: FaultyCluster, traffic: Traffic, log: StormOptions['log']): void {
  for (const { number, byes, endedAt } of world.cluster.farEnd.calls) {
    if (!byes.some(({ status }) => status === 481)) continue;
    const callId = traffic.accepted.get(traffic.agents.get(number) ?? number);
    const who = traffic.agents.has(number) ? 'agent' : 'person';
    const at = [...byes.map((bye) => bye.at), endedAt ?? 0].map((one) =>
      ((one - world.startedAt) / 1_000).toFixed(1),
    );
    log(
      `${callId}: its ${who} was hung up at ${at.slice(0, -1).join(', ')} s and had left the call at ${at.at(-1)} s`,
    );
  }
}

function countsOf(types: readonly string[], wanted: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    wanted.map((one) => [one, types.filter((type) => type === one).length]),
  );
}

/** Returns the rows that are left in SQL although no node would ever look at them again. */
async function leftovers(pool: Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ what: string; count: number }>(
    `select 'calls without an end' as what, count(*)::integer from calls where ended_at is null
     union all select 'ends that were not published', count(*)::integer from calls
       where ended_at is not null and end_published_at is null
     union all select 'notifications owed', count(*)::integer from notification_lanes`,
  );
  return rows.filter((row) => row.count > 0).map((row) => `${row.count} ${row.what}`);
}
