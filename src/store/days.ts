// Manages the daily partitions of the tables that keep their rows for as long as the call itself.
// With one partition per day, retention can drop whole days. Dropping a partition only takes a
// moment, whereas deleting the rows would take minutes of writes.
//
// The day is the UTC day on which the call was accepted, no matter when the row itself is written,
// so all of a call's rows are in one partition. As a result, including the day in a key doesn't
// weaken the key's uniqueness, and code that runs after midnight finds the rows from before
// midnight.
//
// On the hot path, statements contain the day as text (`where day = '2026-03-01'`) and are prepared
// once per day, so their plans have a single partition. If the day is a parameter or comes from a
// join, each execution locks and opens every day's partition. With 30 partitions, that costs three
// times the CPU.
//
// Every table also has a default partition (`call_events_rest`). Thanks to that, an insert can't
// fail because its day has no partition, e.g. after the gateway has been down for several days, or
// if the clock is wrong. If the default partition already has a row for a day, all of that day's
// rows go there, and retention deletes them one by one.

import type { Pool, PoolClient } from 'pg';
import type { Logger } from '../lib/logger.ts';
import { hasCode } from './sql-errors.ts';
import { inTransaction } from './transaction.ts';

/**
 * `YYYY-MM-DD`, which is safe in a statement's text. In SQL, the `day` column of `calls` has the
 * same value.
 */
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
    const itemsOfDay = days.get(item.day);
    if (itemsOfDay === undefined) days.set(item.day, [item]);
    else itemsOfDay.push(item);
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

/**
 * How many days ahead we create partitions. A dump that reads all tables blocks their creation, but
 * no dump takes this long.
 */
const daysAhead = 2;
const dayMs = 86_400_000;
/**
 * We give up on a table lock after this time, because all later statements on the table queue up
 * behind the statement that is waiting for the lock.
 */
const lockTimeoutMs = 200;
/**
 * Key of the advisory lock that makes nodes create partitions one after the other. Must differ from
 * the schema's lock key.
 */
const lockKey = '31366214770880364';
const maxWaitMs = 10_000;

/**
 * Creates the missing partitions for today and the next days. Each node calls this when it starts,
 * and then every hour.
 */
export async function makeDays(pool: Pool, logger: Logger, now: Date): Promise<void> {
  const days = Array.from({ length: daysAhead + 1 }, (_, ahead) =>
    dayOf(new Date(now.getTime() + ahead * dayMs)),
  );
  for (const { table, day } of await listMissing(pool, days)) {
    await unlessBusy(logger, { table, day }, 'create', () =>
      inTransaction(pool, (client) => makePartition(client, table, day)),
    );
  }
}

type Partition = { readonly table: TableByDay; readonly day: Day };

async function listMissing(pool: Pool, days: readonly Day[]): Promise<readonly Partition[]> {
  const wanted = days.flatMap((day) => tablesByDay.map((table) => ({ table, day })));
  const known = new Set((await listDays(pool)).map(partitionName));
  return wanted.filter((partition) => !known.has(partitionName(partition)));
}

/**
 * Creates a table and attaches it as a partition. Creating it directly as a partition would lock
 * the whole table against reads and writes.
 */
async function makePartition(client: PoolClient, table: TableByDay, day: Day): Promise<void> {
  const name = partitionName({ table, day });
  await client.query(`set local lock_timeout = ${maxWaitMs}`);
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

/** Returns the partitions of single days, oldest first. */
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
 * Drops the partition if `isExpired` is still true once we have the table lock. If a long read is
 * using the table, we soon give up on the lock, so that calls don't queue up behind us, and the
 * next purge tries again.
 */
export async function dropDay(
  pool: Pool,
  logger: Logger,
  partition: Partition,
  isExpired: (queries: Pick<Pool, 'query'>) => Promise<boolean>,
): Promise<void> {
  if (!(await isExpired(pool))) return;
  await unlessBusy(logger, partition, 'drop', () =>
    inTransaction(pool, async (client) => {
      await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
      await client.query(`lock table only ${partition.table} in access exclusive mode`);
      // Another node may have dropped the partition first.
      if (await isExpired(client))
        await client.query(`drop table if exists ${partitionName(partition)}`);
    }),
  );
}

/**
 * Runs `change`. Postpones it if other sessions are using the table (55P03), or if the default
 * partition already has rows for that day (23514).
 */
async function unlessBusy(
  logger: Logger,
  partition: Partition,
  action: 'create' | 'drop',
  change: () => Promise<void>,
): Promise<void> {
  try {
    await change();
  } catch (error) {
    if (!hasCode(error, /^(55P03|23514)$/)) throw error;
    logger.info({ err: error, ...partition, action }, 'change to the partition of a day postponed');
  }
}

function partitionName({ table, day }: Partition): string {
  return `${table}_${day.replaceAll('-', '')}`;
}
