// Tables whose rows go with the age of their call have a partition for each day, so that forgetting a
// day is dropping its partitions: a moment, where deleting its rows would be minutes of writing.
//
// The day is the UTC day on which the call was accepted, whenever the row is written. So all rows of a
// call are in one partition, a key that includes the day is as unique as the same key without it, and
// what comes after midnight finds what came before.
//
// A statement of the hot path names the day in its text (`where day = '2026-03-01'`) and is prepared
// once for each day. Its plan then has one partition. With the day as a parameter or from a join, each
// execution locks and opens the partitions of all days: three times the CPU with 30 of them.
//
// Every table has a partition for the rest (`call_events_rest`): an insert never fails because a day has
// no partition, as after a pause of days or with a clock that is wrong. A day whose first row is there
// stays there, and retention deletes its rows one by one.

import type { Pool, PoolClient } from 'pg';
import type { Logger } from '../lib/logger.ts';
import { hasCode } from './sql-errors.ts';
import { inTransaction } from './transaction.ts';

/** `YYYY-MM-DD`, safe in the text of a statement. The column `day` of `calls` is the same in SQL. */
export type Day = `${number}-${number}-${number}`;

export function dayOf(acceptedAt: Date): Day {
  return acceptedAt.toISOString().slice(0, 10) as Day;
}

export type CallOfDay = { readonly callId: string; readonly day: Day };

export function byDay<Item extends { readonly day: Day }>(
  items: readonly Item[],
): ReadonlyMap<Day, readonly Item[]> {
  const days = new Map<Day, Item[]>();
  for (const item of items) {
    const ofDay = days.get(item.day);
    if (ofDay === undefined) days.set(item.day, [item]);
    else ofDay.push(item);
  }
  return days;
}

export const tablesByDay = [
  'call_events',
  'notifications',
  'delivery_attempts',
  'call_captures',
] as const;
export type TableByDay = (typeof tablesByDay)[number];

export const restPartitions = tablesByDay
  .map((table) => `create table ${restOf(table)} partition of ${table} default;`)
  .join('\n');

export function restOf(table: TableByDay): string {
  return `${table}_rest`;
}

/** A dump that reads all tables keeps partitions from being made. No dump takes this long. */
const daysAhead = 2;
const dayMs = 86_400_000;
/** Later statements queue behind one that waits for a table. */
const lockTimeoutMs = 200;
/** Nodes that start together wait for each other. It differs from the lock of the schema. */
const lockKey = '31366214770880364';
const longestWaitMs = 10_000;

/** Makes the partitions of today and of the next days. Each node calls it when it starts, and then every hour. */
export async function makeDays(pool: Pool, logger: Logger, now: Date): Promise<void> {
  const days = Array.from({ length: daysAhead + 1 }, (_, ahead) =>
    dayOf(new Date(now.getTime() + ahead * dayMs)),
  );
  for (const { table, day } of await missingOf(pool, days)) {
    await unlessBusy(logger, { table, day }, 'made', () =>
      inTransaction(pool, (client) => makePartition(client, table, day)),
    );
  }
}

type Partition = { readonly table: TableByDay; readonly day: Day };

async function missingOf(pool: Pool, days: readonly Day[]): Promise<readonly Partition[]> {
  const wanted = days.flatMap((day) => tablesByDay.map((table) => ({ table, day })));
  const known = new Set((await listDays(pool)).map(nameOf));
  return wanted.filter((partition) => !known.has(nameOf(partition)));
}

/** Makes a table and attaches it. To create it as a partition would lock the whole table against reading and writing. */
async function makePartition(client: PoolClient, table: TableByDay, day: Day): Promise<void> {
  const name = nameOf({ table, day });
  await client.query(`set local lock_timeout = ${longestWaitMs}`);
  await client.query(`select pg_advisory_xact_lock(${lockKey})`);
  await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
  await client.query(`
    do $$ begin
      if to_regclass('${name}') is null then
        create table ${name} (like ${table} including all excluding identity);
        alter table ${table} attach partition ${name} for values in ('${day}');
      end if;
    end $$`);
}

/** The partitions of single days, oldest first. */
export async function listDays(pool: Pick<Pool, 'query'>): Promise<readonly Partition[]> {
  const { rows } = await pool.query<Partition>(
    `select inhparent::regclass::text as table, to_char(to_date(right(relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as day
     from pg_inherits join pg_class on pg_class.oid = inhrelid
     where inhparent = any($1::text[]::regclass[]) and relname ~ '_[0-9]{8}$'
     order by day, relname`,
    [tablesByDay],
  );
  return rows;
}

/**
 * Drops the partition if `isOver` still holds once nobody else has the table. The lock is given up
 * after a moment, so that calls do not wait behind it for what somebody reads: the next look tries again.
 */
export async function dropDay(
  pool: Pool,
  logger: Logger,
  partition: Partition,
  isOver: (queries: Pick<Pool, 'query'>) => Promise<boolean>,
): Promise<void> {
  if (!(await isOver(pool))) return;
  await unlessBusy(logger, partition, 'dropped', () =>
    inTransaction(pool, async (client) => {
      await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
      await client.query(`lock table only ${partition.table} in access exclusive mode`);
      // Another node may have been faster.
      if (await isOver(client)) await client.query(`drop table if exists ${nameOf(partition)}`);
    }),
  );
}

/** Leaves the change to the next look if others use the table (55P03) or its rest has rows of the day (23514). */
async function unlessBusy(
  logger: Logger,
  partition: Partition,
  what: 'made' | 'dropped',
  change: () => Promise<void>,
): Promise<void> {
  try {
    await change();
  } catch (error) {
    if (!hasCode(error, /^(55P03|23514)$/)) throw error;
    logger.info({ err: error, ...partition }, `the partition of a day is not ${what} now`);
  }
}

function nameOf({ table, day }: Partition): string {
  return `${table}_${day.replaceAll('-', '')}`;
}
