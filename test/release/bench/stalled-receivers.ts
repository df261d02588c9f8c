// Measures what an account whose receivers stall costs another account. The measure is the delay
// from an event to its notification at one good receiver, first alone and then beside thirty
// stalled receivers. Each of these answers once and then stalls in its own way. Their backlogs are
// filled one after another. The notifier runs alone, on a real database and real HTTP.

import { setTimeout as pause } from 'node:timers/promises';
import { defaultRetrySchedule } from '../../../src/notifier/delivery-rules.ts';
import type { Database } from '../../../src/store/database.ts';
import { createNotifierRig, personCall } from '../../notifier/notifier-rig.ts';
import { eventually } from '../../support/eventually.ts';
import {
  type HostileReceiver,
  type Manner,
  startHostileReceiver,
} from '../../support/hostile-receiver.ts';
import { startReceiver } from '../../support/receiver.ts';
import { forgetNotifications, onDatabases } from './notifier-databases.ts';
import { optionsOf } from './options.ts';
import { percentile } from './process-usage.ts';

const manners: readonly Manner[] = [
  'never answers',
  'never accepts',
  'drips a head',
  'drips a body',
  'answers late',
];
/** A notification that takes longer than this counts as missing. */
const patienceMs = 20_000;
const notificationsPerCall = 4;
/** The calls of one stalled receiver: more than the notifier keeps in memory for it. */
const callsPerStalled = 240;

type Options = {
  readonly stalled: number;
  readonly callsPerSecond: number;
  readonly seconds: number;
  readonly manners: readonly Manner[];
};

export async function benchStalledReceivers(args: readonly string[]): Promise<void> {
  const values = optionsOf(args, {
    stalled: 30,
    rate: 5,
    seconds: 20,
    manner: 'all',
    database: 'both',
  });
  const options = {
    stalled: values.stalled,
    callsPerSecond: values.rate,
    seconds: values.seconds,
    manners: values.manner === 'all' ? manners : manners.filter((each) => each === values.manner),
  };
  await onDatabases(values.database, (name, database) => benchOn(name, database, options));
}

async function benchOn(name: string, database: Database, options: Options): Promise<void> {
  console.log(`\n${name}: ${options.callsPerSecond} calls/s, 4 notifications per call`);
  for (const stalled of [0, options.stalled]) {
    await forgetNotifications(database);
    const rig = createNotifierRig(database, defaultRetrySchedule);
    const node = await rig.start({ pollMs: 1_000 });
    const stalling = await Promise.all(
      Array.from({ length: stalled }, (_, index) =>
        startHostileReceiver(options.manners[index % options.manners.length] ?? 'never answers'),
      ),
    );
    await stall(rig, node, stalling);
    const queues = node.queues();
    const { delays, sent } = await deliver(rig, node, options);
    console.log(
      `  beside ${stalled} stalled (${queues} calls in memory): p50 ${percentile(delays, 0.5).toFixed(0)} ms, ` +
        `p99 ${percentile(delays, 0.99).toFixed(0)} ms, ${sent - delays.length} of ${sent} did not arrive within 20 s`,
    );
    await Promise.all(stalling.map(({ close }) => close()));
    await rig.stop();
  }
}

type Rig = ReturnType<typeof createNotifierRig>;
type Node = Awaited<ReturnType<Rig['start']>>;

async function stall(rig: Rig, node: Node, stalling: readonly HostileReceiver[]): Promise<void> {
  const failed = ({ url }: HostileReceiver) => rig.call(url, { accountId: 'stalling' }).failed();
  await node.handle(stalling.map(failed));
  await eventually(async () => (await rig.lanesLeft()) === 0, 'each receiver has answered once');
  for (const each of stalling) each.turn();
  for (const each of stalling)
    await node.handle(Array.from({ length: callsPerStalled }, () => failed(each)));
}

async function deliver(
  rig: Rig,
  node: Node,
  { callsPerSecond, seconds }: Options,
): Promise<{ readonly delays: readonly number[]; readonly sent: number }> {
  const receiver = await startReceiver();
  const handedAt = new Map<string, number>();
  const delays: number[] = [];
  receiver.onReceived(({ body }) => {
    const delay = performance.now() - (handedAt.get(body.eventId) ?? Number.NaN);
    if (delay <= patienceMs) delays.push(delay);
  });
  const total = callsPerSecond * seconds;
  const startedAt = performance.now();
  const handled: Promise<void>[] = [];
  for (let index = 0; index < total; index += 1) {
    const dueInMs = startedAt + (index * 1_000) / callsPerSecond - performance.now();
    if (dueInMs > 0) await pause(dueInMs);
    const events = personCall(rig.call(receiver.url, { accountId: 'well-behaved' }));
    const now = performance.now();
    for (const event of events) handedAt.set(event.id, now);
    handled.push(node.handle(events));
  }
  await Promise.all(handled);
  const sent = total * notificationsPerCall;
  await eventually(() => delays.length >= sent, 'everything is delivered', patienceMs).catch(
    () => undefined,
  );
  await receiver.close();
  return { delays, sent };
}
