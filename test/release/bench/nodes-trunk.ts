// Measures what the callees see of three nodes that share one trunk with limits, while calls are
// always waiting.

import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { coreShare, cores, cpuByPart } from './cpu-by-part.ts';
import { type BenchCluster, startBenchCluster } from './node-cluster.ts';
import { percentile } from './process-usage.ts';

const callsPerSecond = 20;
const maxConcurrentCalls = 40;
/**
 * The most starts in a second. A second that begins between two starts has one more, and a start
 * may be slightly early or late.
 */
const mostInASecond = 22;
const leastUsed = 0.95;
/** The number of waiting calls. The bench dials more calls as soon as there are fewer. */
const waitingCalls = 100;
const feedEveryMs = 20;
/** A call is up 60 ms longer than it talks, because it also rings. */
const talksTenths = [
  { name: 'calls of 1.5 s: callsPerSecond is the limit', tenths: 14 },
  { name: 'calls of 4 s: maxConcurrentCalls is the limit', tenths: 39 },
] as const;
const settleMs = 60;

export async function benchTrunk(seconds: number): Promise<void> {
  console.log(
    `\nA trunk with callsPerSecond ${callsPerSecond}, maxConcurrentCalls ${maxConcurrentCalls}; 3 nodes, ${seconds} s`,
  );
  for (const { name, tenths } of talksTenths) {
    await using world = await startBenchCluster(['a', 'b', 'c'], {
      trunk: [`callsPerSecond: ${callsPerSecond}`, `maxConcurrentCalls: ${maxConcurrentCalls}`],
    });
    console.log(`  ${name}`);
    await measure(world, tenths, seconds);
  }
}

async function measure(world: BenchCluster, tenths: number, seconds: number): Promise<void> {
  const { farEnd } = world.cluster;
  const before = cpuByPart();
  const startedAt = performance.now();
  const { callIds, fewestWaiting } = await feed(world, tenths, seconds);
  const cpu = coreShare(before, cpuByPart(), (performance.now() - startedAt) / 1_000);
  await eventually(
    () => callIds.every((callId) => world.receiver.hasEnded(callId)),
    'all calls have ended',
    120_000,
  );
  const invitedAt = farEnd.calls.map((call) => call.invitedAt);
  const from = invitedAt[0] ?? Number.NaN;
  const invites = invitedAt.filter((at) => at < from + seconds * 1_000).length;
  const callSeconds = (tenths * 100 + settleMs) / 1_000;
  const allowed = Math.min(callsPerSecond, maxConcurrentCalls / callSeconds) * seconds;
  const gaps = invitedAt.slice(1).map((at, index) => at - (invitedAt[index] ?? at));
  print('most concurrent calls', `${farEnd.mostUp} (allowed: ${maxConcurrentCalls})`);
  print(
    'most new Call-IDs in any second',
    `${farEnd.peakInvitesPerSecond()} (goal: at most ${mostInASecond})`,
  );
  print(
    'used share of the limit',
    `${((100 * invites) / allowed).toFixed(1)} % (${invites} of ${allowed.toFixed(0)} calls; goal: at least ${leastUsed * 100} %)`,
  );
  print(
    'from one INVITE to the next',
    `p1 ${percentile(gaps, 0.01)} ms, p50 ${percentile(gaps, 0.5)} ms, p99 ${percentile(gaps, 0.99)} ms, max ${Math.max(...gaps)} ms`,
  );
  print('fewest waiting calls', String(fewestWaiting));
  // On a machine that is busy with other work starts are late, and a late start takes another turn.
  const others = cpu['everything else on the machine'].toFixed(0);
  print('CPU of everything else on the machine', `${others} % of a core, of ${cores}`);
  print('numbers called twice', `${world.calledTwice()} of ${callIds.length}`);
}

async function feed(
  world: BenchCluster,
  tenths: number,
  seconds: number,
): Promise<{ readonly callIds: readonly string[]; readonly fewestWaiting: number }> {
  const { farEnd } = world.cluster;
  const callIds: string[] = [];
  const waiting = () => callIds.length - farEnd.calls.length;
  const dialMissing = async (): Promise<void> => {
    const missing = Array.from({ length: waitingCalls - waiting() }, () =>
      world.dial('talk', tenths),
    );
    for (const { callId } of await Promise.all(missing)) callIds.push(callId);
  };
  await dialMissing();
  await eventually(() => farEnd.calls.length > 0, 'the first call rings');
  const until = performance.now() + seconds * 1_000;
  let fewestWaiting = waitingCalls;
  while (performance.now() < until) {
    fewestWaiting = Math.min(fewestWaiting, waiting());
    await dialMissing();
    await pause(feedEveryMs);
  }
  return { callIds, fewestWaiting };
}

function print(what: string, value: string): void {
  console.log(`    ${what.padEnd(40)} ${value}`);
}
