// Test runs: followed as the test runner publishes them, whatever the order and however often; read by whoever started them.

import { and, desc, eq, inArray, or, sql } from 'drizzle-orm';
import type { BatchConsumer } from '../../events/batch-consumer.ts';
import { type Ingested, startIngestConsumer } from '../../events/ingest.ts';
import type { Database } from '../../store/database.ts';
import { testRuns } from '../../store/schema.ts';
import { dataRefusal } from '../../store/sql-errors.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { createResultFiles, ensureResultBucket, type ResultFiles } from '../result-files.ts';
import { type PublishedTestRun, publishedTestRun, type TestRun } from './test-run-schema.ts';

export type RunKey = {
  readonly accountId: string;
  readonly botId: string;
  readonly runId: string;
};

export type StoredTestRun = {
  readonly suiteName: string;
  readonly run: TestRun;
  /** In the object store. */
  readonly fileName: string | undefined;
};

type Row = typeof testRuns.$inferInsert;

export async function findTestRun(
  { db }: Pick<Database, 'db'>,
  { accountId, botId, runId }: RunKey,
): Promise<StoredTestRun | undefined> {
  const isIt = and(
    eq(testRuns.accountId, accountId),
    eq(testRuns.botId, botId),
    eq(testRuns.runId, runId),
  );
  const [row] = await db.select().from(testRuns).where(isIt);
  if (row === undefined) return undefined;
  const { suiteName, fileName, document } = row;
  // Written by `applyTestRuns`, which had it checked.
  return { suiteName, fileName: fileName ?? undefined, run: document as TestRun };
}

export type StreamQuery = {
  readonly accountId: string;
  /** What a run was published with. */
  readonly streamId: string;
  readonly suiteName: string;
  readonly runId: string;
  /** Of these bots; undefined: of any. */
  readonly botIds: readonly string[] | undefined;
};

export function botsOfRunStatement({ db }: Pick<Database, 'db'>, query: StreamQuery) {
  const isNamed = eq(testRuns.botId, query.streamId);
  return (
    db
      .select({ botId: testRuns.botId })
      .from(testRuns)
      .where(
        and(
          eq(testRuns.accountId, query.accountId),
          eq(testRuns.runId, query.runId),
          eq(testRuns.suiteName, query.suiteName),
          or(isNamed, sql`${testRuns.document}->>'streamId' = ${query.streamId}`),
          query.botIds && inArray(testRuns.botId, [...query.botIds]),
        ),
      )
      .orderBy(desc(isNamed))
      // Two are enough to know that the stream does not tell them apart.
      .limit(2)
  );
}

/** The bot of that very name before others; two at most. */
export async function botsOfRun(
  database: Pick<Database, 'db'>,
  query: StreamQuery,
): Promise<readonly string[]> {
  return (await botsOfRunStatement(database, query)).map(({ botId }) => botId);
}

/** A run tells its progress every second or so: few are ever waiting. */
const maxBatch = 50;

export async function followTestRuns(dependencies: CompanionDependencies): Promise<BatchConsumer> {
  const { config, database, bots, events, clock, logger } = dependencies;
  await ensureResultBucket(events, config.retention.eventDays);
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

/** One statement stores all of them or none. */
export function applyTestRuns(
  { db }: Pick<Database, 'db'>,
  files: Pick<ResultFiles, 'put'>,
  clock: { now(): Date },
): (batch: readonly Ingested<PublishedTestRun>[]) => Promise<void> {
  return async (batch) => {
    const rows = await Promise.all(batch.map((told) => toRow(told, files, clock.now())));
    // A statement changes a row once; and every node takes them in one order, so that no two wait for each other.
    const latest = new Map(rows.toSorted(byAge).map((row) => [keyOf(row), row]));
    const keys = [...latest.keys()].toSorted();
    await db
      .insert(testRuns)
      .values(keys.flatMap((key) => latest.get(key) ?? []))
      .onConflictDoUpdate({
        target: [testRuns.accountId, testRuns.botId, testRuns.runId],
        set: {
          suiteName: sql`excluded.suite_name`,
          document: sql`excluded.document`,
          fileName: sql`excluded.file_name`,
          isCompleted: sql`excluded.is_completed`,
          version: sql`excluded.version`,
          updatedAt: sql`excluded.updated_at`,
        },
        // Completed is final: what comes after it may correct it, and never have it running again.
        setWhere: sql`(excluded.is_completed, excluded.version) > (${testRuns.isCompleted}, ${testRuns.version})`,
      });
  };
}

async function toRow(
  { bot, body, version }: Ingested<PublishedTestRun>,
  files: Pick<ResultFiles, 'put'>,
  updatedAt: Date,
): Promise<Row> {
  const { testSuiteName, ...run } = body;
  const key = { accountId: bot.accountId, botId: bot.botId, runId: run._id };
  const row = { ...key, suiteName: testSuiteName, version, updatedAt };
  if (run.status === 'running') return { ...row, document: run, isCompleted: false };
  const { resultCsv, ...document } = run;
  if (resultCsv === undefined) {
    const { isAvailable, fileId = null } = run.result;
    return { ...row, document, isCompleted: true, fileName: isAvailable ? fileId : null };
  }
  // A name that no producer may use, and another one for each version: who reads an earlier file reads it to its end.
  const fileName = `${keyOf(key)}/${version}`;
  await files.put(fileName, resultCsv);
  const result = { ...run.result, fileId: run.result.fileId ?? key.runId };
  return { ...row, document: { ...document, result }, isCompleted: true, fileName };
}

/** Completed is later than running, whenever it was told. */
function byAge(a: Row, b: Row): number {
  return Number(a.isCompleted) - Number(b.isCompleted) || a.version - b.version;
}

function keyOf({ accountId, botId, runId }: RunKey): string {
  return [accountId, botId, runId].join('/');
}
