// PGlite has no autovacuum, so its planner doesn't learn that tables have grown. A plan made for an
// empty table would keep reading the whole table. We therefore analyse each table whenever it has
// doubled in size, which also discards its cached plans. Planning every execution instead would add
// up to a third of a call's cost.

import type { Pool } from 'pg';

/**
 * Table sizes are checked this often. Until the first check, statements read all of a new table,
 * which means a few hundred rows at PGlite's rate.
 */
export const growthCheckMs = 10_000;

/**
 * PostgreSQL's default is 100. With 10, an analysis samples 3,000 rows instead of 30,000. In the
 * meantime, live calls have to wait for the only session.
 */
export const statisticsTarget = 10;

/** For tables up to this size, reading the whole table is the best plan. */
const fewPages = 4;

/** `relpages` is the table's size at the last analysis. */
const grownStatement = {
  name: 'grown tables',
  text: `
select oid::regclass::text as name from pg_class
where relnamespace = 'public'::regnamespace and relkind = 'r'
  and pg_relation_size(oid) / current_setting('block_size')::integer >= 2 * greatest(relpages, ${fewPages})`,
} as const;

/** Analyses the tables that have grown, and returns their names. */
export async function analyzeGrown(pool: Pick<Pool, 'query'>): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>(grownStatement);
  // One statement per table, so that other statements can run in between.
  for (const { name } of rows) await pool.query(`analyze ${name}`);
  return rows.map(({ name }) => name);
}
