// Kills a node with its calls up. Measures how long it takes until each call has its terminal
// notification, and until its callee is hung up.

import { Client } from 'pg';
import { eventually } from '../../support/eventually.ts';
import { isTerminal } from '../../support/receiver.ts';
import { type BenchCluster, type Dialled, startBenchCluster } from './node-cluster.ts';
import { percentile } from './process-usage.ts';

const names = ['a', 'b'] as const;
const wantedMs = 15_000;
const maxWaitMs = 60_000;
/** This many concurrent POSTs do not overload the nodes. */
const dialsAtOnce = 50;

export async function benchKill(kills: number, calls: number): Promise<void> {
  console.log(`\nSIGKILL of one of two nodes with ${calls} calls up, with the default lease`);
  await using world = await startBenchCluster(names);
  let up: readonly Dialled[] = [];
  for (let kill = 1; kill <= kills; kill += 1) {
    up = [...up, ...(await raise(world, calls - up.length))];
    const { name, lost, kept } = await heavier(world, up);
    console.log(
      `  kill ${kill}: node ${name} with ${lost.length} calls, ${kept.length} on the other`,
    );
    await killed(world, name, lost);
    const far = world.farCalls();
    const stillUp = kept.filter(({ number }) => far.get(number)?.endedAt === undefined);
    print('calls of the other node that are still up', `${stillUp.length} of ${kept.length}`);
    print('numbers called twice', String(world.calledTwice()));
    up = stillUp;
    await world.startNode(name);
  }
}

async function raise(world: BenchCluster, count: number): Promise<readonly Dialled[]> {
  const dialled: Dialled[] = [];
  while (dialled.length < count) {
    const some = Math.min(dialsAtOnce, count - dialled.length);
    dialled.push(...(await Promise.all(Array.from({ length: some }, () => world.dial('stay', 0)))));
  }
  const isUp = () => {
    const far = world.farCalls();
    return dialled.every(
      ({ callId, number }) =>
        far.get(number)?.acknowledgedAt !== undefined && world.receiver.has(callId),
    );
  };
  await eventually(isUp, 'all calls are up', maxWaitMs);
  return dialled;
}

async function heavier(world: BenchCluster, up: readonly Dialled[]) {
  const client = new Client({ connectionString: world.databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ call_id: string; node_id: string }>(
    'select call_id, node_id from calls join nodes using (owner_id) where call_id = any($1)',
    [up.map(({ callId }) => callId)],
  );
  await client.end();
  const nodeOf = new Map(rows.map((row) => [row.call_id, row.node_id]));
  const [a = [], b = []] = names.map((name) =>
    up.filter(({ callId }) => nodeOf.get(callId) === name),
  );
  return a.length >= b.length ? { name: 'a', lost: a, kept: b } : { name: 'b', lost: b, kept: a };
}

async function killed(world: BenchCluster, name: string, lost: readonly Dialled[]): Promise<void> {
  const from = world.receiver.arrivals.length;
  const killedAt = Date.now();
  await world.nodes.get(name)?.kill();
  world.nodes.delete(name);
  const endedAt = () => {
    const far = world.farCalls();
    return lost.flatMap(({ number }) => far.get(number)?.endedAt ?? []);
  };
  const isOver = () =>
    lost.every(({ callId }) => world.receiver.hasEnded(callId)) && endedAt().length === lost.length;
  // The counts show the ends that are missing after the time-out.
  await eventually(isOver, 'every call has its end', maxWaitMs).catch(() => undefined);
  const lostIds = new Set(lost.map(({ callId }) => callId));
  const terminals = world.receiver.arrivals
    .slice(from)
    .filter(({ received }) => lostIds.has(received.body.callId) && isTerminal(received.body));
  print(
    `terminal notification (goal: ${wantedMs / 1_000} s)`,
    spread(
      terminals.map(({ at }) => at - killedAt),
      lost.length,
    ),
  );
  print(
    'BYE at the callee',
    spread(
      endedAt().map((at) => at - killedAt),
      lost.length,
    ),
  );
  const ends = new Set(terminals.map(({ received }) => received.body.eventId)).size;
  print('terminal notifications without repeats', `${ends} of ${lost.length}`);
}

function spread(milliseconds: readonly number[], of: number): string {
  const seconds = (share: number) => `${(percentile(milliseconds, share) / 1_000).toFixed(2)} s`;
  return `min ${seconds(0)}, median ${seconds(0.5)}, max ${seconds(1)} (${milliseconds.length} of ${of})`;
}

function print(what: string, value: string): void {
  console.log(`    ${what.padEnd(48)} ${value}`);
}
