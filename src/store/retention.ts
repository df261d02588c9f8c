// Deletes old rows in small batches, which keeps statements short so that live calls don't have to
// wait.
//
// Calls are deleted one by one, whereas a day's partitions are dropped in one go once the day's
// retention has passed and all of that day's calls have been deleted. A call's events and
// notifications may therefore outlive the call itself by up to a day, or longer if another call
// from that day still has something to publish or deliver.

import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../lib/logger.ts';
import type { Database } from './database.ts';
import { dayOf, dropDay, listDays, restOf, type TableByDay, tablesByDay } from './days.ts';

/** Rows per statement. With this size, a statement takes about 100 ms on a slow disk. */
const batchRows = 500;
/** Pause between batches, which lets the embedded database's only session run other statements. */
const pauseMs = 20;
/**
 * Totals of calls are small and name nobody. With 400 days, a month can be compared with the same
 * month of the year before.
 */
const totalsRetentionDays = 400;
/** The totals of caller IDs name numbers, and the reputation of a number changes within days. */
const callerTotalsRetentionDays = 31;
const attemptRetentionDays = 7;
const attemptRetention = `${attemptRetentionDays} days`;
const dayMs = 86_400_000;

// However old a call is, we keep it while its end hasn't been published to the stream or it has
// notifications to deliver.
const callStatement = `
with doomed as (
  select call_id from calls
  where accepted_at < $1 and ended_at < $1 and end_published_at < $1
    and not exists (select from notification_lanes l where l.call_id = calls.call_id)
  order by accepted_at limit ${batchRows}
), legs as (
  delete from call_legs where call_id in (select call_id from doomed)
), replays as (
  delete from notification_replays where call_id in (select call_id from doomed)
)
delete from calls where call_id in (select call_id from doomed)`;

const callsLeftStatement = `
select exists (
  select from calls
  where accepted_at >= $1::date::timestamp at time zone 'UTC'
    and accepted_at < ($1::date + 1)::timestamp at time zone 'UTC') as found`;

// The newest attempt has the highest id. Note that replays may add attempts at any time.
const attemptsLeftStatement = `
select exists (
  select from (select started_at from delivery_attempts where day = $1 order by attempt_id desc limit 1) as newest
  where started_at >= $2::timestamptz - interval '${attemptRetention}') as found`;

/**
 * Deletes rows from the default partition, which contains the days whose own partitions weren't
 * created in time.
 */
const restStatement = (table: TableByDay) => `
delete from ${restOf(table)} where ctid = any(array(
  select r.ctid from ${restOf(table)} r
  where r.day < ($1::timestamptz at time zone 'UTC')::date and not exists (select from calls c where c.call_id = r.call_id) limit ${batchRows}))`;

const restAttemptStatement = `
delete from ${restOf('delivery_attempts')} where ctid = any(array(
  select ctid from ${restOf('delivery_attempts')} where started_at < $1::timestamptz - interval '${attemptRetention}'
  limit ${batchRows}))`;

const replayStatement = `
delete from notification_replays where replay_id in (
  select replay_id from notification_replays where replayed_at < $1::timestamptz - interval '${attemptRetention}'
  limit ${batchRows})`;

// Forgets receivers that we no longer send notifications to, because we'd never find out that they
// have recovered.
const endpointStatement = `
delete from notification_endpoints where (app_id, origin) in (
  select app_id, origin from notification_endpoints
  where last_failed_at < $1::timestamptz - interval '${attemptRetention}' limit ${batchRows})`;

const keyStatement = `
delete from idempotency_keys where (app_id, bot_id, key) in (
  select app_id, bot_id, key from idempotency_keys where expires_at < $1
  order by expires_at limit ${batchRows})`;

// A suppression that has ended has no effect any more.
const suppressionStatement = `
delete from suppressions where (account_id, address) in (
  select account_id, address from suppressions where until < $1
  order by until limit ${batchRows})`;

const totalsStatement = `
delete from call_totals where ctid = any(array(
  select ctid from call_totals where slot < $1 order by slot limit ${batchRows}))`;

const callerTotalsStatement = `
delete from caller_totals where ctid = any(array(
  select ctid from caller_totals where slot < $1::timestamptz - interval '${callerTotalsRetentionDays} days'
  order by slot limit ${batchRows}))`;

// Without an order: rows lie roughly in the order of their calls, so the BRIN index finds the old
// ones in the first pages.
const recordStatement = `
delete from call_records where ctid = any(array(
  select ctid from call_records where accepted_at < $1 limit ${batchRows}))`;

const campaignTotalsStatement = `
delete from campaign_totals where ctid = any(array(
  select ctid from campaign_totals where slot < $1 order by slot limit ${batchRows}))`;

// No rule counts attempts older than 366 days, and `used_at` may be a day too old (`permits.ts`).
const calledNumberStatement = `
delete from called_numbers where ctid = any(array(
  select ctid from called_numbers where used_at < $1::timestamptz - interval '367 days'
  limit ${batchRows}))`;

const messageStatement = `
delete from messages where (account_id, bot_id, message_id) in (
  select account_id, bot_id, message_id from messages
  where created_on at time zone 'UTC' < $1::timestamptz at time zone 'UTC'
  order by created_on at time zone 'UTC' limit ${batchRows})`;

const traceIdStatement = `
update messages set trace_id = null where (account_id, bot_id, message_id) in (
  select account_id, bot_id, message_id from messages
  where trace_id is not null and created_on at time zone 'UTC' < $1::timestamptz at time zone 'UTC'
  order by created_on at time zone 'UTC' limit ${batchRows})`;

// Versions are microseconds since 1970.
const conversationStatement = `
delete from conversations where (account_id, bot_id, session_id) in (
  select account_id, bot_id, session_id from conversations
  where version < (extract(epoch from $1::timestamptz) * 1000000)::bigint
  order by version limit ${batchRows})`;

const testRunStatement = `
delete from test_runs where (account_id, bot_id, run_id) in (
  select account_id, bot_id, run_id from test_runs where updated_at < $1
  order by updated_at limit ${batchRows})`;

const tables = [
  'calls',
  'call_legs',
  'call_totals',
  'caller_totals',
  'idempotency_keys',
  'suppressions',
  ...tablesByDay.map(restOf),
];

type Stored = Pick<Database, 'kind' | 'pool'>;
type Limits = {
  /** Delete calls that ended before this time. */
  readonly before: Date;
  readonly now: Date;
  /** Stops the purge early. The next purge continues where it left off. */
  readonly stopped?: AbortSignal | undefined;
};

/**
 * Deletes calls that ended before `before`, along with all their data. Also deletes rows that have
 * a retention of their own: attempts, replays, failing receivers, idempotency keys and totals.
 * Returns the number of deleted calls.
 */
export async function purgeExpired(
  database: Stored,
  logger: Logger,
  limits: Limits,
): Promise<number> {
  const { before, now, stopped } = limits;
  const calls = await deleteAll(database, callStatement, before, stopped);
  let others = 0;
  for (const table of tablesByDay) {
    others += await deleteAll(database, restStatement(table), before, stopped);
  }
  const aged = [
    restAttemptStatement,
    replayStatement,
    endpointStatement,
    keyStatement,
    suppressionStatement,
    callerTotalsStatement,
    calledNumberStatement,
  ];
  for (const statement of aged) {
    others += await deleteAll(database, statement, now, stopped);
  }
  others += await deleteAll(database, totalsStatement, totalsBefore(limits), stopped);
  if (calls + others > 0) await vacuum(database, tables);
  await dropOldDays(database, logger, limits);
  return calls;
}

/** Totals live at least as long as the calls, because lists rely on them. */
function totalsBefore({ before, now }: Limits): Date {
  return new Date(Math.min(before.getTime(), now.getTime() - totalsRetentionDays * dayMs));
}

/**
 * Drops the partitions of days that are past their retention and have no calls left. A day's
 * delivery attempts are dropped earlier, as soon as all of them are old enough.
 */
async function dropOldDays(
  { pool }: Stored,
  logger: Logger,
  { before, now, stopped }: Limits,
): Promise<void> {
  const attemptsBefore = dayOf(new Date(now.getTime() - attemptRetentionDays * dayMs));
  for (const partition of await listDays(pool)) {
    if (stopped?.aborted === true) return;
    const { table, day } = partition;
    const isPast = day < dayOf(before);
    const isOfAttempts = table === 'delivery_attempts' && day < attemptsBefore;
    if (!isPast && !isOfAttempts) continue;
    await dropDay(pool, logger, partition, async (queries) => {
      const finds = async (statement: string, values: unknown[]): Promise<boolean> =>
        (await queries.query<{ found: boolean }>(statement, values)).rows[0]?.found === true;
      if (isPast && !(await finds(callsLeftStatement, [day]))) return true;
      return isOfAttempts && !(await finds(attemptsLeftStatement, [day, now]));
    });
  }
}

/**
 * Deletes the trace ids of old messages between bots and users. `purgeHistory` deletes the messages
 * themselves.
 */
export async function forgetTraceIds(
  database: Stored,
  before: Date,
  stopped?: AbortSignal,
): Promise<void> {
  const forgotten = await deleteAll(database, traceIdStatement, before, stopped);
  if (forgotten > 0) await vacuum(database, ['messages']);
}

/**
 * Deletes messages between bots and users that are older than `before`. Also deletes conversations
 * and test runs that were last updated before then. Returns the number of deleted rows.
 */
export async function purgeHistory(
  database: Stored,
  before: Date,
  stopped?: AbortSignal,
): Promise<number> {
  const messages = await deleteAll(database, messageStatement, before, stopped);
  if (messages > 0) await vacuum(database, ['messages', 'message_counts']);
  const conversations = await deleteAll(database, conversationStatement, before, stopped);
  if (conversations > 0) await vacuum(database, ['conversations']);
  const testRuns = await deleteAll(database, testRunStatement, before, stopped);
  if (testRuns > 0) await vacuum(database, ['test_runs']);
  return messages + conversations + testRuns;
}

/** Deletes the records of calls that were accepted before `before`. Returns their number. */
export async function purgeRecords(
  database: Stored,
  before: Date,
  stopped?: AbortSignal,
): Promise<number> {
  const records = await deleteAll(database, recordStatement, before, stopped);
  const totals = await deleteAll(database, campaignTotalsStatement, before, stopped);
  if (records + totals > 0) await vacuum(database, ['call_records', 'campaign_totals']);
  return records;
}

/** Deletes in batches. If the signal aborts, stops early and leaves the rest to the next purge. */
async function deleteAll(
  { pool }: Stored,
  statement: string,
  limit: Date,
  stopped?: AbortSignal,
): Promise<number> {
  let total = 0;
  while (stopped?.aborted !== true) {
    const deleted = (await pool.query(statement, [limit])).rowCount ?? 0;
    total += deleted;
    if (deleted < batchRows) break;
    await pause(pauseMs);
  }
  return total;
}

/** PGlite has no autovacuum, so its files would only grow without this. */
async function vacuum({ kind, pool }: Stored, names: readonly string[]): Promise<void> {
  if (kind !== 'pglite') return;
  for (const name of names) await pool.query(`vacuum (analyze) ${name}`);
}
