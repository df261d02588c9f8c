// Stores the test runs that the test runner publishes, and reads them for apps. The messages may
// arrive in any order and more than once.

import type { BatchConsumer } from '../../events/batch-consumer.ts';
import { type Ingested, startIngestConsumer } from '../../events/ingest.ts';
import type { Database } from '../../store/database.ts';
import { jsonRows } from '../../store/json-rows.ts';
import { all, type Sql, sql } from '../../store/sql.ts';
import { dataRefusal } from '../../store/sql-errors.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { createResultFiles, type ResultFiles } from '../result-files.ts';
import { type PublishedTestRun, publishedTestRun, type TestRun } from './test-run-schema.ts';

export type RunKey = {
  readonly accountId: string;
  readonly botId: string;
  readonly runId: string;
};

export type StoredTestRun = {
  readonly suiteName: string;
  readonly run: TestRun;
  /** The result file's name in the object store. */
  readonly fileName: string | undefined;
};

type Row = {
  readonly account_id: string;
  readonly bot_id: string;
  readonly run_id: string;
  readonly suite_name: string;
  readonly document: object;
  /** The result file's name in the object store. */
  readonly file_name?: string | null;
  readonly is_completed: boolean;
  /** The published run's version. A later version has a higher number. */
  readonly version: number;
  readonly updated_at: Date;
};

export async function findTestRun(
  { reads }: Pick<Database, 'reads'>,
  { accountId, botId, runId }: RunKey,
): Promise<StoredTestRun | undefined> {
  const { rows } = await reads(accountId).query<{
    suite_name: string;
    // `applyTestRuns` stored this document after checking it against the schema.
    document: TestRun;
    file_name: string | null;
  }>(
    `select suite_name, document, file_name from test_runs
     where account_id = $1 and bot_id = $2 and run_id = $3`,
    [accountId, botId, runId],
  );
  return rows.map((row) => ({
    suiteName: row.suite_name,
    run: row.document,
    fileName: row.file_name ?? undefined,
  }))[0];
}

export type StreamQuery = {
  readonly accountId: string;
  /** The `streamId` with which the run was published, or the bot's id. */
  readonly streamId: string;
  readonly suiteName: string;
  readonly runId: string;
  /** Ids of the bots to search. Undefined for all the account's bots. */
  readonly botIds: readonly string[] | undefined;
};

export function botsOfRunStatement(query: StreamQuery): Sql {
  const { accountId, streamId, suiteName, runId, botIds } = query;
  const isNamed = sql`bot_id = ${streamId}`;
  const wanted = all([
    sql`account_id = ${accountId}`,
    sql`run_id = ${runId}`,
    sql`suite_name = ${suiteName}`,
    sql`${isNamed} or document->>'streamId' = ${streamId}`,
    botIds && sql`bot_id = any(${botIds}::text[])`,
  ]);
  // Two bots are enough to tell that the stream is ambiguous.
  return sql`select bot_id from test_runs where ${wanted} order by ${isNamed} desc limit 2`;
}

/**
 * Returns the ids of at most two bots with a matching run. If a bot has exactly this id, it comes
 * first.
 */
export async function botsOfRun(
  { reads }: Pick<Database, 'reads'>,
  query: StreamQuery,
): Promise<readonly string[]> {
  const { rows } = await reads(query.accountId).query<{ bot_id: string }>(
    botsOfRunStatement(query),
  );
  return rows.map((row) => row.bot_id);
}

/**
 * Each run's progress is published about once a second, so only a few messages are ever waiting.
 */
const maxBatch = 50;

export async function followTestRuns(dependencies: CompanionDependencies): Promise<BatchConsumer> {
  const { database, bots, events, clock, logger } = dependencies;
  return await startIngestConsumer(events, {
    kind: 'testruns',
    schema: publishedTestRun,
    ownerOf: (name) => bots.ownerOf(name),
    apply: applyTestRuns(database, createResultFiles(events), clock),
    refusalOf: dataRefusal,
    maxBatch,
    logger,
  });
}

// `completed` is final. A later message may correct the run but can't set the run back to running.
const upsert = `
insert into test_runs
  (account_id, bot_id, run_id, suite_name, document, file_name, is_completed, version, updated_at)
select account_id, bot_id, run_id, suite_name, document, file_name, is_completed, version, updated_at
from json_to_recordset($1::json) as told (account_id text, bot_id text, run_id text, suite_name text, document jsonb,
  file_name text, is_completed boolean, version bigint, updated_at timestamptz)
on conflict (account_id, bot_id, run_id) do update set suite_name = excluded.suite_name, document = excluded.document,
  file_name = excluded.file_name, is_completed = excluded.is_completed, version = excluded.version,
  updated_at = excluded.updated_at
  where (excluded.is_completed, excluded.version) > (test_runs.is_completed, test_runs.version)`;

/** Stores a batch in one statement, so either all runs are stored or none. */
export function applyTestRuns(
  { pool }: Pick<Database, 'pool'>,
  files: Pick<ResultFiles, 'put'>,
  clock: { now(): Date },
): (batch: readonly Ingested<PublishedTestRun>[]) => Promise<void> {
  return async (batch) => {
    const rows = await Promise.all(batch.map((item) => toRow(item, files, clock.now())));
    // A statement can change a row only once, so we keep only the latest version. To prevent
    // deadlocks, all nodes store rows in the same order.
    const latest = new Map(rows.toSorted(byAge).map((row) => [keyOf(row), JSON.stringify(row)]));
    const keys = [...latest.keys()].toSorted();
    await pool.query(upsert, [jsonRows(keys.map((key) => latest.get(key) ?? ''))]);
  };
}

async function toRow(
  { bot, body, version }: Ingested<PublishedTestRun>,
  files: Pick<ResultFiles, 'put'>,
  updatedAt: Date,
): Promise<Row> {
  const { testSuiteName, ...run } = body;
  const key = { account_id: bot.accountId, bot_id: bot.botId, run_id: run._id };
  const row = { ...key, suite_name: testSuiteName, version, updated_at: updatedAt };
  if (run.status === 'running') return { ...row, document: run, is_completed: false };
  const { resultCsv, ...document } = run;
  if (resultCsv === undefined) {
    const { isAvailable, fileId = null } = run.result;
    return { ...row, document, is_completed: true, file_name: isAvailable ? fileId : null };
  }
  // Producers can't use this name. Each version of a run gets its own file name, so a client that
  // is still reading an older file can finish.
  const fileName = `${keyOf(key)}/${version}`;
  await files.put(fileName, resultCsv);
  const result = { ...run.result, fileId: run.result.fileId ?? key.run_id };
  return { ...row, document: { ...document, result }, is_completed: true, file_name: fileName };
}

/** Orders rows by age. `completed` counts as later than `running`, regardless of version. */
function byAge(a: Row, b: Row): number {
  return Number(a.is_completed) - Number(b.is_completed) || a.version - b.version;
}

type Key = Pick<Row, 'account_id' | 'bot_id' | 'run_id'>;

function keyOf({ account_id, bot_id, run_id }: Key): string {
  return [account_id, bot_id, run_id].join('/');
}
