// What a dead receiver costs the others: the delay from an event to its notification at receivers that answer, with and without
// ten thousand calls that are owed to one that accepts connections and never answers. The notifier alone, on a real
// database and real HTTP; rounds with and without are interleaved, because machines are noisy.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { defaultRetrySchedule } from '../../../src/notifier/delivery-rules.ts';
import type { Database } from '../../../src/store/database.ts';
import { createNotifierRig, personCall } from '../../notifier/notifier-rig.ts';
import { eventually } from '../../support/eventually.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { forgetNotifications, onDatabases } from './notifier-databases.ts';
import { optionsOf } from './options.ts';
import { percentile } from './process-usage.ts';

const rounds = 5;
const receivers = 5;
const batch = 200;
/** A little more than the time-out of an attempt. */
const settleMs = 11_000;

type Options = {
  readonly deadCalls: number;
  readonly callsPerSecond: number;
  readonly seconds: number;
};

export async function benchDeliveries(args: readonly string[]): Promise<void> {
  const defaults = { dead: 10_000, rate: 20, seconds: 8, database: 'both' };
  const { dead: deadCalls, rate: callsPerSecond, seconds, database } = optionsOf(args, defaults);
  const options = { deadCalls, callsPerSecond, seconds };
  await onDatabases(database, (name, opened) => benchOn(name, opened, options));
}

async function benchOn(name: string, database: Database, options: Options): Promise<void> {
  console.log(`\n${name}: ${options.callsPerSecond} calls/s, 4 notifications each`);
  const alone: Measured[] = [];
  const beside: Measured[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const without = await measure(database, { ...options, deadCalls: 0 });
    const withDead = await measure(database, options);
    alone.push(without);
    beside.push(withDead);
    console.log(`  round ${round}, alone:  ${describe(without)}`);
    console.log(`  round ${round}, beside ${options.deadCalls} dead: ${describe(withDead)}`);
  }
  for (const what of ['p50Ms', 'p99Ms', 'cpuMs'] as const) {
    const medianOf = (runs: readonly Measured[]) =>
      percentile(
        runs.map((run) => run[what]),
        0.5,
      );
    const [median, medianBeside] = [medianOf(alone), medianOf(beside)];
    const change = (100 * (medianBeside / median - 1)).toFixed(0);
    console.log(
      `  median ${what}: alone ${median.toFixed(1)}, beside ${medianBeside.toFixed(1)} (${change} %)`,
    );
  }
}

/** The CPU is that of this process, receivers included, for each call that is delivered. */
type Measured = { readonly p50Ms: number; readonly p99Ms: number; readonly cpuMs: number };

function describe({ p50Ms, p99Ms, cpuMs }: Measured): string {
  return `p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms, ${cpuMs.toFixed(1)} ms CPU a call`;
}

async function measure(database: Database, options: Options): Promise<Measured> {
  await forgetNotifications(database);
  if (database.kind === 'pglite') await database.pool.query('vacuum');
  const rig = createNotifierRig(database, defaultRetrySchedule);
  const node = await rig.start({ pollMs: 1_000 });
  const dead = createServer(() => {
    // Never answers.
  });
  await new Promise<void>((resolve) => dead.listen(0, '127.0.0.1', resolve));
  const deadUrl = `http://127.0.0.1:${(dead.address() as AddressInfo).port}/`;
  const alive = await Promise.all(Array.from({ length: receivers }, () => startReceiver()));
  try {
    for (let owed = 0; owed < options.deadCalls; owed += batch) {
      const calls = Array.from({ length: batch }, () => rig.call(deadUrl));
      await node.handle(calls.map((call) => call.failed()));
    }
    // What the database and the heap have to do after so many inserts is no delivery; by then sends have timed out too.
    await pause(settleMs);
    const before = process.cpuUsage();
    const measured = await delays(rig, node, alive, options);
    const { user, system } = process.cpuUsage(before);
    return {
      p50Ms: percentile(measured, 0.5),
      p99Ms: percentile(measured, 0.99),
      cpuMs: (user + system) / 1_000 / (options.callsPerSecond * options.seconds),
    };
  } finally {
    dead.closeAllConnections();
    dead.close();
    await rig.stop();
    for (const receiver of alive) await receiver.close();
  }
}

async function delays(
  rig: ReturnType<typeof createNotifierRig>,
  node: { handle(events: ReturnType<typeof personCall>): Promise<void> },
  alive: readonly Receiver[],
  { callsPerSecond, seconds }: Options,
): Promise<readonly number[]> {
  const statedAt = new Map<string, number>();
  const measured: number[] = [];
  for (const receiver of alive) {
    receiver.onReceived(({ body }) => {
      measured.push(performance.now() - (statedAt.get(body.eventId) ?? Number.NaN));
    });
  }
  const total = callsPerSecond * seconds;
  const startedAt = performance.now();
  const stated: Promise<void>[] = [];
  for (let index = 0; index < total; index += 1) {
    const dueInMs = startedAt + (index * 1_000) / callsPerSecond - performance.now();
    if (dueInMs > 0) await pause(dueInMs);
    const events = personCall(rig.call(alive[index % alive.length]?.url));
    const now = performance.now();
    for (const event of events) statedAt.set(event.id, now);
    stated.push(node.handle(events));
  }
  await Promise.all(stated);
  await eventually(() => measured.length >= total * 4, 'everything is delivered', 60_000);
  return measured;
}
