// Runs one statement at a time. Implemented by a pool, and by an account's share of a pool.

import type { QueryConfig, QueryResultRow } from 'pg';

export type Queries = {
  query<Row extends QueryResultRow>(
    statement: string | QueryConfig,
    values?: unknown[],
  ): Promise<{ rows: Row[]; rowCount: number | null }>;
};
