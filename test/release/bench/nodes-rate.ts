// Measures calls per second from the POST to the last notification, with one node and with two. The
// two clusters run side by side and take alternate rounds, so that both are warm. This process is
// the dialer, the callees and the receiver, and it shares the cores.

import { setTimeout as pause } from 'node:timers/promises';
import { type CpuByPart, coreShare, cores, cpuByPart, parts } from './cpu-by-part.ts';
import { type BenchCluster, startBenchCluster } from './node-cluster.ts';
import { percentile } from './process-usage.ts';

const callsAtOnce = 100;
/**
 * The callee hangs up after this time, in tenths of a second. With its ringing a call takes 0.2 s.
 */
const talkTenths = 1;
/**
 * The warm-up calls of each node. V8 compiles for each process separately, so the same warm-up time
 * would leave two nodes half as warm as one.
 */
const warmUpCallsEach = 2_500;
const warmUpSecondsAtMost = 120;
const idleSeconds = 5;
const maxEndMs = 60_000;

type Round = { readonly rate: number; readonly failed: number; readonly cpu: CpuByPart };
type Side = { readonly name: string; readonly world: BenchCluster; readonly rounds: Round[] };

export async function benchRate(rounds: number, seconds: number): Promise<void> {
  console.log(`\nCalls per second on ${cores} cores, ${callsAtOnce} calls at once`);
  await using one = await startBenchCluster(['a'], { firstMediaPort: 10_000 });
  await using two = await startBenchCluster(['a', 'b'], { firstMediaPort: 20_000 });
  const sides: readonly Side[] = [
    { name: '1 node', world: one, rounds: [] },
    { name: '2 nodes', world: two, rounds: [] },
  ];
  for (const { world } of sides) {
    await round(world, warmUpSecondsAtMost, warmUpCallsEach * world.nodes.size);
  }
  const idle = await idleShare();
  for (let number = 1; number <= rounds; number += 1) {
    // Alternates the order, so that neither side always comes second.
    for (const side of number % 2 === 1 ? sides : sides.toReversed()) {
      side.rounds.push(await round(side.world, seconds));
    }
    const rates = sides.map((side) => `${side.name} ${side.rounds.at(-1)?.rate.toFixed(0)}`);
    console.log(`  round ${number}: ${rates.join(', ')} calls/s`);
  }
  report(sides, idle);
}

async function round(
  world: BenchCluster,
  seconds: number,
  mostCalls = Number.POSITIVE_INFINITY,
): Promise<Round> {
  const before = cpuByPart();
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  let dialled = 0;
  let calls = 0;
  let failed = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < until && dialled < mostCalls) {
      dialled += 1;
      const { callId } = await world.dial('talk', talkTenths);
      const last = await world.receiver.ended(callId);
      calls += 1;
      if (last.body.status === 'completed') continue;
      failed += 1;
      if (failed === 1) console.log(`  first failure: ${last.body.reason}`);
    }
  };
  const late = new AbortController();
  await Promise.race([
    Promise.all(Array.from({ length: callsAtOnce }, caller)),
    pause(seconds * 1_000 + maxEndMs, undefined, { signal: late.signal }).then(() => {
      throw new Error('calls did not end');
    }),
  ]);
  late.abort();
  const elapsed = (performance.now() - startedAt) / 1_000;
  return { rate: calls / elapsed, failed, cpu: coreShare(before, cpuByPart(), elapsed) };
}

/** Returns the CPU use of both clusters without any call. */
async function idleShare(): Promise<CpuByPart> {
  const before = cpuByPart();
  await pause(idleSeconds * 1_000);
  return coreShare(before, cpuByPart(), idleSeconds);
}

function report(sides: readonly Side[], idle: CpuByPart): void {
  const medianOf = ({ rounds }: Side, value: (round: Round) => number) =>
    percentile(rounds.map(value), 0.5);
  const rates = sides.map((side) => medianOf(side, ({ rate }) => rate));
  const [one = Number.NaN, two = Number.NaN] = rates;
  row('median', [...sides.map((side) => side.name), 'idle']);
  row('calls/s', [...rates.map((rate) => rate.toFixed(0)), '']);
  row('failed calls, all rounds', [
    ...sides.map(({ rounds }) => String(rounds.reduce((sum, { failed }) => sum + failed, 0))),
    '',
  ]);
  const shares = parts.map((part) => ({
    part,
    medians: sides.map((side) => medianOf(side, ({ cpu }) => cpu[part])),
  }));
  for (const { part, medians } of shares) {
    const values = [...medians, idle[part]];
    row(
      `CPU, % of a core: ${part}`,
      values.map((value) => value.toFixed(0)),
    );
  }
  const used = sides.map((_, index) =>
    shares.reduce((sum, { medians }) => sum + (medians[index] ?? 0), 0),
  );
  row(`CPU, % of a core: total, of ${cores * 100}`, [...used.map((sum) => sum.toFixed(0)), '']);
  row('CPU time per call, without everything else, ms', [
    ...used.map((sum, index) => {
      const others = shares.at(-1)?.medians[index] ?? 0;
      return (((sum - others) * 10) / (rates[index] ?? Number.NaN)).toFixed(1);
    }),
    '',
  ]);
  console.log(`  two nodes complete ${(two / one).toFixed(2)} times the calls of one`);
}

function row(what: string, values: readonly string[]): void {
  console.log(`  ${what.padEnd(52)} ${values.map((value) => value.padStart(8)).join('')}`);
}
