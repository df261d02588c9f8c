// Searches a whole database for values that a SecretBox sealed, whatever column they are in.

import type { Pool } from 'pg';

type Column = { readonly table_name: string; readonly column_name: string; readonly type: string };

/**
 * Returns `table.column` of each column that contains a value with this header: as bytes, or as
 * base64 anywhere in text or JSON.
 */
export async function columnsWith(
  pool: Pick<Pool, 'query'>,
  header: Buffer,
): Promise<readonly string[]> {
  const base64 = header.toString('base64');
  const { rows } = await pool.query<Column>(
    `select table_name, column_name, data_type as type from information_schema.columns
     where table_schema = 'public' and data_type in ('bytea', 'text', 'jsonb', 'json')
     order by table_name, column_name`,
  );
  const found: string[] = [];
  for (const { table_name: table, column_name: column, type } of rows) {
    const condition =
      type === 'bytea' ? `position($1::bytea in ${column}) > 0` : `strpos(${column}::text, $1) > 0`;
    const matches = await pool.query(`select from ${table} where ${condition} limit 1`, [
      type === 'bytea' ? header : base64,
    ]);
    if (matches.rowCount === 1) found.push(`${table}.${column}`);
  }
  return found;
}

/** Returns `table.column` of all columns of bytes, except in partitions. */
export async function byteColumns(pool: Pick<Pool, 'query'>): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select relname || '.' || attname as name from pg_attribute join pg_class on pg_class.oid = attrelid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and atttypid = 'bytea'::regtype and attnum > 0 and not attisdropped
     order by name`,
  );
  return rows.map((row) => row.name);
}
