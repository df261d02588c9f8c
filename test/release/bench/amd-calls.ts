// Measures the CPU time of a call with detection at realistic rates. A call lasts ten seconds, and
// the other end (sipp) plays a person or a voicemail. Counts everything except sipp and the dialer,
// by process and thread. `--against <commit>` also measures another commit, or the build in another
// folder, with alternating rounds. `--profiled 1,2,10` shows where the CPU time goes in these
// rounds after a start, at each rate, and `--profiled none` doesn't. `--traced 0` leaves out the
// system calls. `--warm-up 0` shows what the first calls after a start cost. The bench fails if too
// many verdicts are wrong.

import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startReceiver } from '../../support/receiver.ts';
import { callSeconds, startCallee } from './amd-calls-callee.ts';
import {
  type CpuPart,
  counted,
  cpuParts,
  type MeasuredGateway,
  startMeasured,
  type Usage,
} from './amd-calls-gateway.ts';
import { type Load, type PlacedCalls, placeCalls, type World } from './amd-calls-load.ts';
import { type Spent, subsystemNames } from './amd-calls-profile.ts';
import { countSystemCalls } from './amd-calls-system-calls.ts';
import { type Build, buildHere, buildOf } from './build-of-commit.ts';
import { cores } from './cpu-by-part.ts';
import { percentile } from './process-usage.ts';
import { timed } from './timed-receiver.ts';

const leastRight = 0.98;
const warmUpRate = 20;
const idleSeconds = 5;
/** The writes that follow the end of a call are finished within this time. */
const settleMs = 1_000;
const mostWrongShown = 10;
/** Lines that would show less than this per call are left out. */
const leastShownMs = 0.005;
const leastStatements = 0.02;
const mostShown = { byModule: 40, byFunction: 40 } as const;
const tracedRate = 5;

type Options = {
  readonly rates: readonly number[];
  readonly calls: number;
  readonly rounds: number;
  /** The number of calls before the first round. Until then, V8 compiles the code of a call. */
  readonly warmUp: number;
  readonly profiled: readonly number[];
  /** The number of calls whose system calls are counted. */
  readonly traced: number;
};
type Round = Usage & PlacedCalls & { readonly calls: number; readonly seconds: number };

export async function benchAmdCalls(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rates: { type: 'string', default: '5,20,60' },
      calls: { type: 'string', default: '200' },
      rounds: { type: 'string', default: '3' },
      'warm-up': { type: 'string', default: '400' },
      profiled: { type: 'string', default: '1,2,10' },
      traced: { type: 'string', default: '30' },
      database: { type: 'string', default: 'both' },
      against: { type: 'string' },
    },
  });
  const options = {
    rates: values.rates.split(',').map(Number),
    calls: Number(values.calls),
    rounds: Number(values.rounds),
    warmUp: Number(values['warm-up']),
    traced: Number(values.traced),
    profiled: values.profiled === 'none' ? [] : values.profiled.split(',').map(Number),
  };
  const builds: Build[] = [];
  const receiver = timed(await startReceiver());
  try {
    for (const other of values.against?.split(',') ?? []) builds.push(await buildOf(other));
    builds.push(buildHere());
    await using callee = await startCallee();
    const world = { callee, receiver };
    if (values.database !== 'pglite')
      await benchOn('PostgreSQL (fsync on)', builds, world, options);
    if (values.database !== 'postgres') await benchOn('PGlite', builds, world, options);
  } finally {
    await receiver.close();
    for (const build of builds) await build[Symbol.asyncDispose]();
  }
}

async function benchOn(
  database: string,
  builds: readonly Build[],
  world: World,
  options: Options,
): Promise<void> {
  console.log(
    `\nCalls of ${callSeconds} s with detection on ${database}, ${cores} cores, ${world.callee.recordings} recordings`,
  );
  const embedded = database === 'PGlite';
  if (options.rounds > 0) await benchRounds(embedded, builds, world, options);
  for (const rate of options.profiled.length > 0 ? options.rates : [])
    for (const build of builds) await profileAt(rate, { build, embedded }, world, options);
}

async function benchRounds(
  embedded: boolean,
  builds: readonly Build[],
  world: World,
  options: Options,
): Promise<void> {
  const sides: MeasuredGateway[] = [];
  try {
    for (const [index, build] of builds.entries())
      sides.push(await startMeasured(build, { embedded, index }));
    const warmUp = { rate: warmUpRate, calls: options.warmUp };
    for (const side of warmUp.calls > 0 ? sides : []) await round(side, world, warmUp);
    for (const side of sides) console.log(`  ${side.name}, idle: ${await idleShare(side)}`);
    for (const rate of options.rates) await benchAt(rate, sides, world, options);
    const traced = { rate: tracedRate, calls: options.traced };
    for (const side of traced.calls > 0 ? sides : []) {
      const threads = await side.threads();
      await countSystemCalls(side.name, threads, traced.calls, () => round(side, world, traced));
    }
  } finally {
    for (const side of sides.toReversed()) await side[Symbol.asyncDispose]();
  }
}

/** Starts a gateway of its own, so that its first calls are the first of the process. */
async function profileAt(
  rate: number,
  { build, embedded }: { readonly build: Build; readonly embedded: boolean },
  world: World,
  { calls, profiled }: Options,
): Promise<void> {
  const load = { rate, calls };
  console.log(`\n  ${build.name}: where the CPU time goes at ${rate} calls/s, ms per call`);
  await using side = await startMeasured(build, { embedded, index: 0 });
  const columns: ProfiledRound[] = [];
  for (let number = 1; number <= Math.max(...profiled); number += 1) {
    if (!profiled.includes(number)) await round(side, world, load);
    else columns.push(await profiledRound(number, side, world, load));
  }
  row(
    `rounds of ${calls} calls since the start`,
    columns.map(({ number }) => `round ${number}`),
  );
  for (const part of cpuParts) reportSpent(part, columns, calls);
  for (const part of cpuParts) reportCode(part, columns.at(-1), calls);
}

/** Prints the functions and modules that take most of a part's CPU time. */
function reportCode(part: CpuPart, column: ProfiledRound | undefined, calls: number): void {
  const spent = column?.spent.get(part);
  if (column === undefined || spent === undefined) return;
  for (const kind of ['byModule', 'byFunction'] as const) {
    const times = [...spent[kind]].toSorted(([, one], [, other]) => other - one);
    const sum = times.reduce((total, [, ms]) => total + ms, 0);
    const cpuMs = ((column.cpu[part] * 1_000) / calls) * (1 / Math.max(1, sum));
    const shown = times
      .slice(0, mostShown[kind])
      .filter(([, ms]) => ms * cpuMs > leastShownMs * 10);
    if (shown.length === 0) continue;
    console.log(
      `    ${part}, ${kind === 'byModule' ? 'modules' : 'functions'}, round ${column.number}:`,
    );
    for (const [name, ms] of shown) console.log(`      ${(ms * cpuMs).toFixed(2)} ${name}`);
  }
}

type ProfiledRound = {
  readonly number: number;
  readonly spent: ReadonlyMap<CpuPart, Spent>;
  readonly cpu: Usage['cpu'];
};

async function profiledRound(
  number: number,
  side: MeasuredGateway,
  world: World,
  load: Load,
): Promise<ProfiledRound> {
  const rounds: Round[] = [];
  const spent = await side.profile(async () => {
    rounds.push(await round(side, world, load));
  });
  const [{ cpu } = { cpu: (await side.usage()).cpu }] = rounds;
  return { number, spent, cpu };
}

/**
 * V8 samples by the clock, also while a thread waits for a core. So the samples give the shares,
 * and the CPU time of the threads gives the sum, which includes what the sampling itself costs.
 */
function reportSpent(part: CpuPart, columns: readonly ProfiledRound[], calls: number): void {
  const cpuMs = ({ cpu }: ProfiledRound) => (cpu[part] * 1_000) / calls;
  if (columns.every((column) => cpuMs(column) < leastShownMs)) return;
  row(
    part,
    columns.map((column) => cpuMs(column).toFixed(2)),
  );
  for (const name of subsystemNames) {
    const shown = columns.map((column) => {
      const times = column.spent.get(part)?.bySubsystem ?? new Map<string, number>();
      const sum = [...times.values()].reduce((total, ms) => total + ms, 0);
      return cpuMs(column) * ((times.get(name) ?? 0) / Math.max(1, sum));
    });
    if (shown.some((ms) => ms >= leastShownMs))
      row(
        `  ${name}`,
        shown.map((ms) => ms.toFixed(2)),
      );
  }
}

async function benchAt(
  rate: number,
  sides: readonly MeasuredGateway[],
  world: World,
  options: Options,
): Promise<void> {
  // The round is at least one call length long, so that it reaches the number of concurrent calls
  // of this rate.
  const calls = Math.max(options.calls, rate * callSeconds);
  const measured = sides.map((side) => ({ side, rounds: [] as Round[] }));
  console.log(`\n  ${rate} calls/s, ${options.rounds} rounds of ${calls} calls, medians`);
  for (let number = 1; number <= options.rounds; number += 1) {
    // Always in the same order, so that each gateway has been idle for as long as the others before
    // its round. After an idle minute, a round takes a tenth more CPU.
    for (const { side, rounds } of measured) {
      rounds.push(await round(side, world, { rate, calls }));
    }
    const sums = measured.map(({ side, rounds }) => {
      const last = rounds.at(-1);
      return `${side.name} ${last === undefined ? '' : cpuMs(last).toFixed(1)} ms`;
    });
    console.log(`    round ${number}: CPU time per call ${sums.join(', ')}`);
  }
  report(measured);
}

async function round(side: MeasuredGateway, world: World, load: Load): Promise<Round> {
  const before = await side.usage();
  const startedAt = performance.now();
  const placed = await placeCalls(side.gateway, world, load);
  await pause(settleMs);
  const after = await side.usage();
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    cpu: difference(before.cpu, after.cpu),
    wakes: difference(before.wakes, after.wakes),
    counts: difference(before.counts, after.counts),
    statements: difference({ ...zeroes(after.statements), ...before.statements }, after.statements),
    calls: load.calls,
    ...placed,
  };
}

function difference<Name extends string>(
  before: Readonly<Record<Name, number>>,
  after: Readonly<Record<Name, number>>,
): Readonly<Record<Name, number>> {
  const names = Object.keys(before) as Name[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as Record<
    Name,
    number
  >;
}

function zeroes(counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.keys(counts).map((name) => [name, 0]));
}

/** Returns the CPU use of a gateway, its database and NATS without any call. */
async function idleShare(side: MeasuredGateway): Promise<string> {
  const before = await side.usage();
  const startedAt = performance.now();
  await pause(idleSeconds * 1_000);
  const seconds = (performance.now() - startedAt) / 1_000;
  const used = total(difference(before.cpu, (await side.usage()).cpu));
  return `${((100 * used) / seconds).toFixed(1)} % of a core`;
}

function total(cpu: Usage['cpu']): number {
  return cpuParts.reduce((sum, part) => sum + cpu[part], 0);
}

function cpuMs({ cpu, calls }: Round): number {
  return (total(cpu) * 1_000) / calls;
}

type Measured = { readonly side: MeasuredGateway; readonly rounds: readonly Round[] };

function report(measured: readonly Measured[]): void {
  const values = (value: (round: Round) => number, digits: number) =>
    measured.map(({ rounds }) => percentile(rounds.map(value), 0.5).toFixed(digits));
  row('', [...measured.map(({ side }) => side.name)]);
  row('CPU time per call, ms: all', values(cpuMs, 1));
  for (const part of cpuParts) {
    row(
      `  ${part}`,
      values((round) => (round.cpu[part] * 1_000) / round.calls, 1),
    );
  }
  row('lowest and highest round', spreads(measured));
  row('wakes per call, per second', []);
  for (const part of cpuParts) {
    const perCall = values((round) => round.wakes[part] / round.calls, 0);
    const perSecond = values((round) => round.wakes[part] / round.seconds, 0);
    row(
      `  ${part}`,
      perCall.map((count, index) => `${count}, ${perSecond[index]}`),
    );
  }
  row('per call:', []);
  for (const what of counted) {
    row(
      `  ${what}`,
      values((round) => round.counts[what] / round.calls, 1),
    );
  }
  const names = new Set(
    measured.flatMap(({ rounds }) => rounds.flatMap(({ statements }) => Object.keys(statements))),
  );
  for (const name of names) {
    const shown = values((round) => (round.statements[name] ?? 0) / round.calls, 2);
    if (shown.some((value) => Number(value) >= leastStatements)) row(`    ${name}`, shown);
  }
  row(
    'calls/s dialled',
    values(({ rate }) => rate, 1),
  );
  const shares = measured.map(({ rounds }) => {
    const sum = (value: (round: Round) => number) =>
      rounds.reduce((total, round) => total + value(round), 0);
    return 1 - sum(({ wrong }) => wrong.length) / sum(({ calls }) => calls);
  });
  row(
    'right verdicts, all rounds, %',
    shares.map((share) => (share * 100).toFixed(1)),
  );
  for (const { side, rounds } of measured) {
    const wrong = countEach(rounds.flatMap((each) => each.wrong));
    for (const [what, count] of [...wrong].slice(0, mostWrongShown)) {
      console.log(`    ${side.name}, wrong in ${count} calls: ${what}`);
    }
  }
  if (shares.every((share) => share >= leastRight)) return;
  process.exitCode = 1;
  console.log(`    FAILED: fewer than ${leastRight * 100} % of the verdicts are right`);
}

function spreads(measured: readonly Measured[]): readonly string[] {
  return measured.map(({ rounds }) => {
    const costs = rounds.map(cpuMs);
    return `${Math.min(...costs).toFixed(1)}-${Math.max(...costs).toFixed(1)}`;
  });
}

function row(what: string, values: readonly string[]): void {
  console.log(`    ${what.padEnd(50)} ${values.map((value) => value.padStart(12)).join('')}`);
}

function countEach(values: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
