// PGlite has no autovacuum: nothing tells its planner how large tables have become, and a query plan that was kept from when they
// were empty would go on reading them whole. So each table is analysed when it has doubled, which also drops the query plans that were kept
// of it. A new query plan for each execution instead is a third of what a call costs there.

import type { Pool } from 'pg';

/** Until then a new table is read whole: some hundred rows, at the rate that PGlite can take. */
export const growthLookMs = 10_000;

/**
 * Of PostgreSQL's own 100: 3,000 rows are looked at instead of 30,000, since the calls of the moment wait for the one session
 * meanwhile.
 */
export const statisticsTarget = 10;

/** What fits into so few is read whole by the best of query plans. */
const fewPages = 4;

/** `relpages` is what the last analysis has found. */
const grownStatement = {
  name: 'grown tables',
  text: `
select oid::regclass::text as name from pg_class
where relnamespace = 'public'::regnamespace and relkind = 'r'
  and pg_relation_size(oid) / current_setting('block_size')::integer >= 2 * greatest(relpages, ${fewPages})`,
} as const;

/** The names of those tables. */
export async function analyzeGrown(pool: Pick<Pool, 'query'>): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>(grownStatement);
  // One by one: others come in between.
  for (const { name } of rows) await pool.query(`analyze ${name}`);
  return rows.map(({ name }) => name);
}
