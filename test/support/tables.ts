// Lists the tables of a database with any schema, and inserts rows that the product would not write
// in one step.

import type { Pool } from 'pg';
import { retryConflicts } from '../../src/store/sql-errors.ts';

type Queryable = Pick<Pool, 'query'>;

/** Returns the names of all tables except the list of migrations. Partitions are not included. */
export async function tableNamesIn(pool: Queryable): Promise<readonly string[]> {
  const { rows } = await pool.query<{ relname: string }>(`
    select relname from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relname <> 'schema_migrations'
    order by relname`);
  return rows.map((row) => row.relname);
}

/** Empties the tables. For a few rows this is faster than `truncate`. */
export async function empty(pool: Queryable, tables: readonly string[]): Promise<void> {
  // A part that is still running, e.g. a notifier, may lock the same rows in another order.
  await retryConflicts(() => pool.query(tables.map((name) => `delete from ${name}`).join(';')));
}

/**
 * Inserts rows. Members are columns: `callId` stands for `call_id`. A member that a row omits is
 * null if another row has it.
 */
export async function insertRows(
  pool: Queryable,
  table: string,
  rows: readonly object[],
): Promise<void> {
  const written = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [columnOf(name), value])),
  );
  const columns = [...new Set(written.flatMap(Object.keys))].join(', ');
  await pool.query(
    `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $1)`,
    [JSON.stringify(written)],
  );
}

type Row = Readonly<Record<string, unknown>>;

export async function rowsIn(pool: Queryable, table: string): Promise<readonly Row[]> {
  return (await pool.query<Row>(`select * from ${table}`)).rows;
}

function columnOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
