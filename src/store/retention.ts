// Deleting what is old, a little at a time, so that no statement is long and the calls of the moment never wait.

import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from './database.ts';

/** Rows in one statement: some 100 ms on a slow disk. */
const batchRows = 500;
/** Between statements: leaves the single session of the embedded database to others. */
const pauseMs = 20;
const attemptRetention = '7 days';

// A call that still owes something is kept, however old: its end is not on the stream, or it has notifications to deliver.
const callStatement = `
with doomed as (
  select call_id from calls
  where accepted_at < $1 and ended_at < $1 and end_published_at < $1
    and not exists (select from notification_lanes l where l.call_id = calls.call_id)
  order by accepted_at limit ${batchRows}
), events as (
  delete from call_events where call_id in (select call_id from doomed)
), legs as (
  delete from call_legs where call_id in (select call_id from doomed)
), bodies as (
  delete from notifications where call_id in (select call_id from doomed)
), attempts as (
  delete from delivery_attempts where call_id in (select call_id from doomed)
), replays as (
  delete from notification_replays where call_id in (select call_id from doomed)
), captures as (
  delete from call_captures where call_id in (select call_id from doomed)
)
delete from calls where call_id in (select call_id from doomed)`;

const attemptStatement = `
delete from delivery_attempts where attempt_id in (
  select attempt_id from delivery_attempts where started_at < $1::timestamptz - interval '${attemptRetention}'
  limit ${batchRows})`;

const replayStatement = `
delete from notification_replays where replay_id in (
  select replay_id from notification_replays where replayed_at < $1::timestamptz - interval '${attemptRetention}'
  limit ${batchRows})`;

// A receiver that nothing is sent to any more, so that it cannot be known whether it has recovered.
const endpointStatement = `
delete from notification_endpoints where (app_id, origin) in (
  select app_id, origin from notification_endpoints
  where last_failed_at < $1::timestamptz - interval '${attemptRetention}' limit ${batchRows})`;

const keyStatement = `
delete from idempotency_keys where (app_id, bot_id, key) in (
  select app_id, bot_id, key from idempotency_keys where expires_at < $1
  order by expires_at limit ${batchRows})`;

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

const tables = ['calls', 'call_events', 'notifications', 'delivery_attempts', 'idempotency_keys'];

type Stored = Pick<Database, 'kind' | 'pool'>;

/** Calls that ended before `before` with all that belongs to them; and what has its own, shorter time. Calls deleted. */
export async function purgeExpired(
  database: Stored,
  before: Date,
  now: Date,
  stopped?: AbortSignal,
): Promise<number> {
  const calls = await deleteAll(database, callStatement, before, stopped);
  let others = 0;
  for (const statement of [attemptStatement, replayStatement, endpointStatement, keyStatement]) {
    others += await deleteAll(database, statement, now, stopped);
  }
  if (calls + others > 0) await vacuum(database, tables);
  return calls;
}

/** Of messages between bots and users; what is left of these stays until `purgeHistory`. */
export async function forgetTraceIds(
  database: Stored,
  before: Date,
  stopped?: AbortSignal,
): Promise<void> {
  const forgotten = await deleteAll(database, traceIdStatement, before, stopped);
  if (forgotten > 0) await vacuum(database, ['messages']);
}

/** Messages between bots and users that are older; conversations and test runs that were told of last before then. How many. */
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

/** Ends early at the signal: the next purge goes on. */
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

/** PGlite has no autovacuum: without this its files would only ever grow. */
async function vacuum({ kind, pool }: Stored, names: readonly string[]): Promise<void> {
  if (kind !== 'pglite') return;
  for (const name of names) await pool.query(`vacuum (analyze) ${name}`);
}
