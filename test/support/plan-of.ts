// Asks the database how it would run a statement.

import type { Pool } from 'pg';
import { type Sql, sql } from '../../src/store/sql.ts';

export async function planOf(pool: Pick<Pool, 'query'>, statement: Sql): Promise<string> {
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(sql`explain ${statement}`);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}
