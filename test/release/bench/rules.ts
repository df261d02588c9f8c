// What calling rules cost the database: CPU time of taking a call.
//
// 1. An account with all rules, against one without, on one database with records and suppressed
//    numbers, once for each size. With --against COMMIT, that commit too, on a database of its own.
// 2. An account without rules, against the commit before the rules, step by step.
//
// Rounds are interleaved. Figures are medians, per call.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Pool } from 'pg';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import type { RuleSetDocument } from '../../../src/rules/rule-set.ts';
import type { createCallIntake } from '../../../src/store/calls/call-intake.ts';
import type { openDatabase } from '../../../src/store/database.ts';
import type { appendSteps } from '../../../src/store/outbox/call-appends.ts';
import type { Settling } from '../../../src/store/outbox/settling.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { createSecretBox } from '../../../src/store/secrets.ts';
import {
  acceptedCall,
  answeredEventOf,
  endEventOf,
  storedLeg,
} from '../../support/call-records.ts';
import type { takesOf } from '../../support/takes.ts';
import { treeOf } from './build-of-commit.ts';
import { type MeasuredDatabase, measuredDatabase } from './database-cpu.ts';
import { optionsOf } from './options.ts';
import { percentile } from './process-usage.ts';
import { addRecords, addSuppressions, calledNumber } from './rules-fill.ts';

const ruled = 'account-ruled';
const free = 'account-free';
const goalMs = 0.5;
const here = join(import.meta.dirname, '../../..');
const trunk = 'sandbox';
const clock = { now: () => new Date() };

export async function benchRules(args: readonly string[]): Promise<void> {
  const options = optionsOf(args, {
    ...{ on: 'postgres', records: [1_000_000, 10_000_000], suppressions: 1_000_000 },
    ...{ rounds: 10, calls: 500, batch: [1, 20], before: 'ee88a947', against: '', only: '' },
  });
  const kind = options.on === 'pglite' ? 'pglite' : 'postgres';
  if (options.only !== 'without') await withRules(kind, options);
  if (options.only !== 'with') await withoutRules(kind, options);
}

type Rounds = {
  readonly rounds: number;
  readonly calls: number;
  readonly batch: readonly number[];
};

// ── An account with all rules ────────────────────────────────────────────────────────────────────

type RuledSide = {
  readonly name: string;
  readonly database: MeasuredDatabase;
  readonly code: StoreCode;
  /** CPU of a call of each account, by account. */
  used: Map<string, number[]>;
};

const ruledSide = (name: string, database: MeasuredDatabase, code: StoreCode): RuledSide => ({
  ...{ name, database, code, used: new Map() },
});

async function withRules(
  kind: MeasuredDatabase['kind'],
  options: Rounds & {
    readonly records: readonly number[];
    readonly suppressions: number;
    readonly against: string;
  },
): Promise<void> {
  const { against, suppressions } = options;
  await using tree = against === '' ? undefined : await treeOf(against);
  const earlier = tree && (await codeIn(tree.folder));
  const current = await codeIn(here);
  await using then = earlier && (await measuredDatabase(kind, earlier.openDatabase));
  await using now = await measuredDatabase(kind, current.openDatabase);
  const sides: RuledSide[] = [
    ...(earlier && then ? [ruledSide(against, then, earlier)] : []),
    ruledSide('this tree', now, current),
  ];
  for (const { database } of sides) await addRules(database.pool, suppressions);
  let filled = 0;
  for (const records of options.records) {
    for (const { database } of sides) await addRecords(database.pool, ruled, filled + 1, records);
    filled = records;
    console.log(`\n${kind}: ${records} records, ${suppressions} suppressed numbers`);
    row('CPU of taking a call, ms', 'without', 'with', 'more', 'at most');
    for (const batch of options.batch) {
      await printComparison(sides, { ...options, batch, isNew: true });
      await printComparison(sides, { ...options, batch, isNew: false });
    }
  }
}

async function addRules(pool: Pool, suppressions: number): Promise<void> {
  const rules = createRuleSetStore({ database: { pool, reads: () => pool }, clock });
  await rules.put(ruled, 'default', { document: allRules, appId: 'app-1' });
  await addSuppressions(pool, ruled, suppressions);
}

type Comparison = Omit<Rounds, 'batch'> & { readonly batch: number; readonly isNew: boolean };

async function printComparison(sides: readonly RuledSide[], comparison: Comparison): Promise<void> {
  await compareAccounts(sides, comparison);
  for (const { name, used } of sides) {
    const [without, all] = [median(used.get(free)), median(used.get(ruled))];
    const numbers = comparison.isNew ? 'new numbers' : 'called before';
    const what = [`${comparison.batch} at once`, numbers, ...(sides.length > 1 ? [name] : [])];
    row(what.join(', '), ms(without), ms(all), ms(all - without), goalMs.toFixed(1));
  }
}

/** Every rule that is checked when a call is taken. None of them refuses a call. */
const allRules: RuleSetDocument = {
  hours: {
    zones: 'callee',
    windows: [{ days: 'mon-sun', from: '00:00', until: '24:00' }],
    otherwise: 'wait',
  },
  attempts: [
    { most: 100, within: '24h' },
    { most: 100, within: '30d' },
  ],
  rest: { afterAbandoned: '1s', afterAnswered: '1s' },
  consent: 'required',
  ringAtLeastMs: 15_000,
  abandoned: { formula: 'ftc', most: 3, allow: 100_000, hold: true },
};

/** Numbers that no earlier round has called. */
let nextNumber = 0;

async function compareAccounts(
  sides: readonly RuledSide[],
  { rounds, calls, batch, isNew }: Comparison,
): Promise<void> {
  forgetUse(sides);
  const first = nextNumber;
  for (let round = 0; round <= rounds; round += 1) {
    const from = isNew ? nextNumber : first;
    const numberOf = (index: number) => calledNumber(from + index);
    const ordered = <Item>(items: readonly Item[]) =>
      round % 2 === 0 ? items : items.toReversed();
    for (const side of ordered(sides)) {
      for (const accountId of ordered([free, ruled])) {
        const taken = await acceptAndTake(side, { accountId, calls, batch, numberOf });
        addUse(side, accountId, taken / calls);
      }
    }
    // The first round prepares the statements.
    if (round === 0) forgetUse(sides);
    nextNumber += calls;
  }
}

function forgetUse(sides: readonly RuledSide[]): void {
  for (const side of sides) side.used = new Map();
}

function addUse({ used }: RuledSide, accountId: string, cpuMs: number): void {
  used.set(accountId, [...(used.get(accountId) ?? []), cpuMs]);
}

async function acceptAndTake(
  { database: { pool, cpuMs }, code }: RuledSide,
  options: {
    readonly accountId: string;
    readonly calls: number;
    readonly batch: number;
    readonly numberOf: (index: number) => string;
  },
): Promise<number> {
  const { accountId, calls, batch, numberOf } = options;
  const all = Array.from({ length: calls }, (_, index) => newCall(accountId, numberOf(index)));
  await acceptAll(code.createCallIntake(pool, secrets, 1), all);
  const takes = code.takesOf(pool);
  const before = cpuMs();
  const taken = await takeAll(takes, batch, calls);
  const used = cpuMs() - before;
  if (taken !== calls) throw new Error(`${taken} of ${calls} calls were taken`);
  await endCalls(pool, code.appendSteps, all);
  await settle(pool, code.Settling, all);
  return used;
}

// ── An account without rules ─────────────────────────────────────────────────────────────────────

const steps = ['accept', 'take', 'append', 'settle'] as const;
type Step = (typeof steps)[number];

type Side = {
  readonly name: string;
  readonly database: MeasuredDatabase;
  readonly code: StoreCode;
  readonly used: Record<Step, number[]>;
};

async function withoutRules(
  kind: MeasuredDatabase['kind'],
  options: Rounds & { readonly before: string },
): Promise<void> {
  await using tree = await treeOf(options.before);
  const [current, before] = [await codeIn(here), await codeIn(tree.folder)];
  await using now = await measuredDatabase(kind, current.openDatabase);
  await using then = await measuredDatabase(kind, before.openDatabase);
  const side = (name: string, database: MeasuredDatabase, code: StoreCode): Side => ({
    ...{ name, database, code, used: { accept: [], take: [], append: [], settle: [] } },
  });
  const sides = [side(options.before, then, before), side('this tree', now, current)] as const;
  for (let round = 0; round <= options.rounds; round += 1) {
    for (const one of round % 2 === 0 ? sides : sides.toReversed())
      await runSteps(one, options.calls, round > 0);
  }
  console.log(
    `\n${kind}: accounts without rules, ${options.rounds} rounds of ${options.calls} calls`,
  );
  row('CPU per call, ms', ...sides.map(({ name }) => name), 'ratio', 'rounds');
  for (const step of steps) {
    const [old, fresh] = sides.map(({ used }) => used[step]);
    const ratios = (fresh ?? []).map((value, index) => value / (old?.[index] ?? Number.NaN));
    const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
    row(step, ms(median(old)), ms(median(fresh)), median(ratios).toFixed(3), spread);
  }
}

async function runSteps(
  { database: { pool, cpuMs }, code, used }: Side,
  calls: number,
  counts: boolean,
): Promise<void> {
  const all = Array.from({ length: calls }, (_, index) => newCall(free, calledNumber(index)));
  const measured = async (step: Step, work: () => Promise<unknown>): Promise<void> => {
    const before = cpuMs();
    await work();
    if (counts) used[step].push((cpuMs() - before) / calls);
  };
  await measured('accept', () => acceptAll(code.createCallIntake(pool, secrets, 1), all));
  await measured('take', () => takeAll(code.takesOf(pool), 20, calls));
  await measured('append', () => endCalls(pool, code.appendSteps, all));
  await measured('settle', () => settle(pool, code.Settling, all));
}

/** What the bench uses of a commit. */
type StoreCode = {
  readonly openDatabase: typeof openDatabase;
  readonly createCallIntake: typeof createCallIntake;
  readonly takesOf: (pool: Pool) => Takes;
  readonly appendSteps: typeof appendSteps;
  readonly Settling: typeof Settling;
};

async function codeIn(tree: string): Promise<StoreCode> {
  const load = async <Module>(path: string) => (await import(join(tree, path))) as Module;
  const { createCallTakes } = await load<{
    createCallTakes: (pool: Pool, ownerId: string) => Takes;
  }>('src/store/calls/call-takes.ts');
  // A commit from before the rules has no such file.
  const checked = await load<{ takesOf: (pool: Pool, ownerId: string) => Takes }>(
    'test/support/takes.ts',
  ).catch(() => undefined);
  return {
    ...(await load<Pick<StoreCode, 'openDatabase'>>('src/store/database.ts')),
    ...(await load<Pick<StoreCode, 'createCallIntake'>>('src/store/calls/call-intake.ts')),
    ...(await load<Pick<StoreCode, 'appendSteps'>>('src/store/outbox/call-appends.ts')),
    ...(await load<Pick<StoreCode, 'Settling'>>('src/store/outbox/settling.ts')),
    takesOf: (pool) => (checked?.takesOf ?? createCallTakes)(pool, owner),
  };
}

// ── Calls ────────────────────────────────────────────────────────────────────────────────────────

type Takes = Pick<ReturnType<typeof takesOf>, 'take'>;

const owner = 'bench/1';
const secrets = createSecretBox(Buffer.alloc(32, 7));
/** As many steps as the outbox puts into a statement of a busy node. */
const stepsAtOnce = 50;
/** Longer than the rest of `allRules`, so that no round waits for it. */
const restMs = 5_000;
let takeId = 0;

function newCall(accountId: string, number: string): AcceptedCall {
  const base = acceptedCall({ accountId, acceptedAt: new Date() });
  const request = {
    ...base.request,
    target: { kind: 'tel', number } as const,
    trunk,
    campaign: 'spring',
  };
  return { ...base, callId: `call-${randomUUID()}` as CallId, request };
}

async function acceptAll(
  intake: ReturnType<typeof createCallIntake>,
  calls: readonly AcceptedCall[],
): Promise<void> {
  const results = await Promise.all(calls.map((call) => intake.accept(call, {})));
  const refused = results.find(({ kind }) => kind !== 'accepted');
  if (refused !== undefined) throw new Error('a call was not accepted', { cause: refused });
}

async function takeAll(takes: Takes, batch: number, calls: number): Promise<number> {
  let taken = 0;
  while (taken < calls) {
    takeId += 1;
    const limits = { maxConcurrentCalls: 100_000 };
    const request = {
      takeId,
      isRepeated: false,
      source: trunk,
      wanted: batch,
      limits,
      horizonMs: 200,
    };
    const { grants } = await takes.take(request);
    if (grants.length === 0) break;
    taken += grants.filter(({ refusal }) => refusal === undefined).length;
  }
  return taken;
}

/** Stores the INVITE, the answer and the end of each call. */
async function endCalls(
  pool: Pool,
  append: typeof appendSteps,
  calls: readonly AcceptedCall[],
): Promise<void> {
  const now = new Date();
  const ports = {
    ...{ pool, ownerId: owner, owedFor: () => undefined, publishedThrough: () => undefined },
    ...{ now: clock.now, leaseUntil: (at: Date) => at, passRefusedAfterMs: 60_000 },
  };
  const stepsOf = (call: AcceptedCall) => [
    { events: [], leg: storedLeg, dialedAt: now },
    {
      events: [answeredEventOf(call, now.toISOString())],
      answeredAt: new Date(now.getTime() - restMs),
    },
    {
      events: [],
      legIsOver: true as const,
      ending: { event: { ...endEventOf(call), time: now.toISOString() } },
    },
  ];
  for (let first = 0; first < calls.length; first += stepsAtOnce) {
    const some = calls.slice(first, first + stepsAtOnce);
    for (const index of [0, 1, 2]) {
      const waiting = some.flatMap((call) => {
        const step = stepsOf(call)[index];
        return step === undefined ? [] : [{ call, step, isUntaken: false, isRepeated: false }];
      });
      await append(ports, waiting);
    }
  }
}

async function settle(
  pool: Pool,
  Kind: typeof Settling,
  calls: readonly AcceptedCall[],
): Promise<void> {
  for (let first = 0; first < calls.length; first += stepsAtOnce) {
    const settling = new Kind(pool, owner, () => false, silentLogger);
    for (const { callId } of calls.slice(first, first + stepsAtOnce)) settling.settle(callId);
    await settling.stop();
  }
}

function median(values: readonly number[] = []): number {
  return percentile(values, 0.5);
}

function ms(value: number): string {
  return value.toFixed(3);
}

function row(what: string, ...values: readonly string[]): void {
  console.log(`  ${what.padEnd(34)} ${values.map((value) => value.padStart(12)).join('')}`);
}
