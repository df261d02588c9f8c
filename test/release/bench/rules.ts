// What calling rules cost the database: CPU time of taking a call.
//
// 1. An account with all rules, against one without, on one database with records and suppressed
//    numbers, once for each size.
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
import { createCallIntake } from '../../../src/store/calls/call-intake.ts';
import { openDatabase } from '../../../src/store/database.ts';
import { appendSteps } from '../../../src/store/outbox/call-appends.ts';
import { Settling } from '../../../src/store/outbox/settling.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { createSecretBox } from '../../../src/store/secrets.ts';
import {
  acceptedCall,
  answeredEventOf,
  endEventOf,
  storedLeg,
} from '../../support/call-records.ts';
import { takesOf } from '../../support/takes.ts';
import { treeOf } from './build-of-commit.ts';
import { type MeasuredDatabase, measuredDatabase } from './database-cpu.ts';
import { optionsOf } from './options.ts';
import { percentile } from './process-usage.ts';
import { addRecords, addSuppressions, calledNumber } from './rules-fill.ts';

const ruled = 'account-ruled';
const free = 'account-free';
const goalMs = 0.5;
const trunk = 'sandbox';
const clock = { now: () => new Date() };

export async function benchRules(args: readonly string[]): Promise<void> {
  const options = optionsOf(args, {
    ...{ on: 'postgres', records: [1_000_000, 10_000_000], suppressions: 1_000_000 },
    ...{ rounds: 10, calls: 500, batch: [1, 20], before: 'ee88a947', only: '' },
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

async function withRules(
  kind: MeasuredDatabase['kind'],
  options: Rounds & { readonly records: readonly number[]; readonly suppressions: number },
): Promise<void> {
  await using database = await measuredDatabase(kind, openDatabase);
  const { pool } = database;
  await createRuleSetStore({ database: { pool, reads: () => pool }, clock }).put(ruled, 'default', {
    ...{ document: allRules, appId: 'app-1' },
  });
  await addSuppressions(pool, ruled, options.suppressions);
  let filled = 0;
  for (const records of options.records) {
    await addRecords(pool, ruled, filled + 1, records);
    filled = records;
    console.log(`\n${kind}: ${records} records, ${options.suppressions} suppressed numbers`);
    row('CPU of taking a call, ms', 'without', 'with', 'more', 'at most');
    for (const batch of options.batch) {
      for (const [name, isNew] of [
        ['new numbers', true],
        ['called before', false],
      ] as const) {
        const [without, all] = await compareAccounts(database, { ...options, batch, isNew });
        row(
          `${batch} at once, ${name}`,
          ms(without),
          ms(all),
          ms(all - without),
          goalMs.toFixed(1),
        );
      }
    }
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
  database: MeasuredDatabase,
  {
    rounds,
    calls,
    batch,
    isNew,
  }: Omit<Rounds, 'batch'> & { readonly batch: number; readonly isNew: boolean },
): Promise<readonly [number, number]> {
  const results = new Map<string, number[]>([
    [free, []],
    [ruled, []],
  ]);
  const first = nextNumber;
  for (let round = 0; round <= rounds; round += 1) {
    const accounts = round % 2 === 0 ? [free, ruled] : [ruled, free];
    for (const accountId of accounts) {
      const numberOf = (index: number) => calledNumber(isNew ? nextNumber + index : first + index);
      const taken = await acceptAndTake(database, { accountId, calls, batch, numberOf });
      // The first round prepares the statements.
      if (round > 0) results.get(accountId)?.push(taken / calls);
    }
    nextNumber += calls;
  }
  return [median(results.get(free)), median(results.get(ruled))];
}

async function acceptAndTake(
  { pool, cpuMs }: MeasuredDatabase,
  options: {
    readonly accountId: string;
    readonly calls: number;
    readonly batch: number;
    readonly numberOf: (index: number) => string;
  },
): Promise<number> {
  const { accountId, calls, batch, numberOf } = options;
  const all = Array.from({ length: calls }, (_, index) => newCall(accountId, numberOf(index)));
  await acceptAll(createCallIntake(pool, secrets, 1), all);
  const takes = takesOf(pool, owner);
  const before = cpuMs();
  const taken = await takeAll(takes, batch, calls);
  const used = cpuMs() - before;
  if (taken !== calls) throw new Error(`${taken} of ${calls} calls were taken`);
  await endCalls(pool, appendSteps, all);
  await settle(pool, Settling, all);
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
  const [here, before] = [
    await codeIn(join(import.meta.dirname, '../../..')),
    await codeIn(tree.folder),
  ];
  await using now = await measuredDatabase(kind, here.openDatabase);
  await using then = await measuredDatabase(kind, before.openDatabase);
  const side = (name: string, database: MeasuredDatabase, code: StoreCode): Side => ({
    ...{ name, database, code, used: { accept: [], take: [], append: [], settle: [] } },
  });
  const sides = [side(options.before, then, before), side('this tree', now, here)] as const;
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
  const load = async <Module>(path: string) =>
    (await import(join(tree, 'src/store', path))) as Module;
  const isOld = tree !== join(import.meta.dirname, '../../..');
  const { createCallTakes } = await load<{
    createCallTakes: (pool: Pool, ownerId: string) => Takes;
  }>('calls/call-takes.ts');
  return {
    ...(await load<Pick<StoreCode, 'openDatabase'>>('database.ts')),
    ...(await load<Pick<StoreCode, 'createCallIntake'>>('calls/call-intake.ts')),
    ...(await load<Pick<StoreCode, 'appendSteps'>>('outbox/call-appends.ts')),
    ...(await load<Pick<StoreCode, 'Settling'>>('outbox/settling.ts')),
    takesOf: (pool) => (isOld ? createCallTakes(pool, owner) : takesOf(pool, owner)),
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
