// Measures what a dead receiver costs the other receivers: the delay from an event to its
// notification at receivers that answer, with and without a backlog of ten thousand calls for a
// receiver that accepts connections and never answers. The notifier runs alone, on a real database
// and real HTTP. Rounds with and without the backlog alternate, because machines are noisy.

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
/** A little more than the time-out of one attempt. */
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
  console.log(`\n${name}: ${options.callsPerSecond} calls/s, 4 notifications per call`);
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

/** `cpuMs` is the CPU time of this process, receivers included, per delivered call. */
type Measured = { readonly p50Ms: number; readonly p99Ms: number; readonly cpuMs: number };

function describe({ p50Ms, p99Ms, cpuMs }: Measured): string {
  return `p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms, ${cpuMs.toFixed(1)} ms CPU per call`;
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
    // Lets the database and the heap finish their work after so many inserts, because that work
    // does not belong to the deliveries. The attempts at the dead receiver have also timed out by
    // then.
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
  const handedAt = new Map<string, number>();
  const measured: number[] = [];
  for (const receiver of alive) {
    receiver.onReceived(({ body }) => {
      measured.push(performance.now() - (handedAt.get(body.eventId) ?? Number.NaN));
    });
  }
  const total = callsPerSecond * seconds;
  const startedAt = performance.now();
  const handled: Promise<void>[] = [];
  for (let index = 0; index < total; index += 1) {
    const dueInMs = startedAt + (index * 1_000) / callsPerSecond - performance.now();
    if (dueInMs > 0) await pause(dueInMs);
    const events = personCall(rig.call(alive[index % alive.length]?.url));
    const now = performance.now();
    for (const event of events) handedAt.set(event.id, now);
    handled.push(node.handle(events));
  }
  await Promise.all(handled);
  await eventually(() => measured.length >= total * 4, 'everything is delivered', 60_000);
  return measured;
}
