// The storm sends calls at a steady rate into a cluster of three nodes, while a seeded script
// kills, stops and cuts off its parts. Then all faults end, and the storm waits until the end of
// every accepted call has been delivered. Finally it checks the invariants. Further accounts may
// have calling rules, which the INVITEs at the phones must obey.

import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'pg';
import { FaultyCluster } from './faulty-cluster.ts';
import { violations } from './invariants.ts';
import { randomFrom } from './random.ts';
import { RuledTraffic } from './rules/ruled-traffic.ts';
import { leftovers, oneSecondOfSilence, untilNotified } from './settling.ts';
import { eventsOnStream } from './stream-dump.ts';
import { Traffic } from './traffic.ts';
import { stormSound } from './wishes.ts';

export type StormOptions = {
  readonly seed: number;
  readonly seconds: number;
  readonly callsPerSecond: number;
  /** Further calls, of accounts with calling rules. Default: 0. */
  readonly ruledCallsPerSecond?: number;
  /**
   * The time between the starts of two faults. A fault lasts for seconds, so this time determines
   * how many faults overlap.
   */
  readonly faultEveryMs: { readonly from: number; readonly to: number };
  /** The URL of an empty database. */
  readonly databaseUrl: string;
  /** The program of a drachtio-server to use as SIP engine. Default: the embedded engine. */
  readonly drachtio?: string | undefined;
  readonly log: (line: string) => void;
  /** The folder for the logs of the nodes. Default: no logs are written. */
  readonly logFolder?: string;
};

export type StormReport = {
  readonly violations: readonly string[];
  /** Numbers for people to read: calls, faults by kind, redeliveries. */
  readonly counts: Readonly<Record<string, number>>;
};

export async function runStorm(options: StormOptions): Promise<StormReport> {
  const random = randomFrom(options.seed);
  await using world = await FaultyCluster.start(
    options.databaseUrl,
    options.logFolder === undefined ? 'warn' : 'info',
    options.log,
    options.drachtio,
  );
  await world.anyDialer(randomFrom(0))?.addSound(stormSound, oneSecondOfSilence());
  const traffic = new Traffic(world, randomFrom(options.seed + 1), options.callsPerSecond);
  const ruled = await ruledTraffic(world, options);
  const deadline = performance.now() + options.seconds * 1_000;
  traffic.start();
  while (performance.now() < deadline) {
    await pause(random.between(options.faultEveryMs.from, options.faultEveryMs.to));
    world.fault(random);
  }
  await Promise.all([traffic.stop(), ruled?.stop()]);
  await world.calm();
  await traffic.settleDoubts();
  await ruled?.settleDoubts();
  const pool = new Pool({ connectionString: options.databaseUrl, max: 1 });
  try {
    const unnotified = () => traffic.unnotified() + (ruled?.unnotified() ?? 0);
    await untilNotified(world, { unnotified }, pool, options.log);
    logRepeatedByes(world, traffic, options.log);
    return await report(world, { traffic, ruled }, pool);
  } finally {
    await pool.end();
    if (options.logFolder !== undefined) await world.writeLogs(options.logFolder);
  }
}

async function ruledTraffic(
  world: FaultyCluster,
  { ruledCallsPerSecond = 0, seed }: StormOptions,
): Promise<RuledTraffic | undefined> {
  if (ruledCallsPerSecond === 0) return undefined;
  return await RuledTraffic.start(world, randomFrom(seed + 2), ruledCallsPerSecond);
}

type AllTraffic = { readonly traffic: Traffic; readonly ruled: RuledTraffic | undefined };

async function report(
  world: FaultyCluster,
  { traffic, ruled }: AllTraffic,
  pool: Pool,
): Promise<StormReport> {
  const { farEnd, receiver, nats } = world.cluster;
  const events = await eventsOnStream(nats.url);
  const taken = receiver.accepted();
  const broken = violations({
    accepted: new Map([...traffic.accepted, ...(ruled?.accepted ?? [])]),
    refused: traffic.refused,
    // Calls with rules may reach the same number again.
    farCalls: farEnd.calls.filter((call) => ruled?.hasCalled(call) !== true),
    events,
    notifications: taken.map(({ rawBody, body }) => ({ raw: rawBody, body })),
    startedAt: world.startedAt,
    engineDeaths: world.engineDeaths,
    botConnections: world.bots.connections,
    agents: traffic.agents,
    faults: world.faults,
  });
  const found = [...broken, ...((await ruled?.violations(pool)) ?? []), ...(await leftovers(pool))];
  const ids = new Set(taken.map(({ body }) => body.eventId));
  return {
    violations: await withRows(found, pool, world.startedAt),
    counts: {
      ...traffic.counts(),
      ...ruled?.counts(),
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

/** Adds what the database says about the calls that the violations name. */
async function withRows(
  found: readonly string[],
  pool: Pool,
  startedAt: number,
): Promise<readonly string[]> {
  type Row = {
    readonly owner: string | null;
    readonly previous_owner: string | null;
    readonly published: number | null;
    readonly events: string;
  };
  return await Promise.all(
    found.map(async (violation) => {
      const [callId] = /call-[\da-f-]{36}/.exec(violation) ?? [];
      if (callId === undefined) return violation;
      const { rows } = await pool.query<Row>(
        `select owner_id as owner, previous_owner_id as previous_owner,
           published_event_sequence as published,
           (select string_agg(event_sequence || ' ' || type || ' at '
               || round(extract(epoch from time) - $2::numeric / 1000, 1) || ' s',
               ', ' order by event_sequence)
             from call_events e where e.call_id = c.call_id) as events
         from calls c where call_id = $1`,
        [callId, startedAt],
      );
      return `${violation}; the database has ${JSON.stringify(rows)}`;
    }),
  );
}

function countsOf(types: readonly string[], wanted: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    wanted.map((one) => [one, types.filter((type) => type === one).length]),
  );
}
