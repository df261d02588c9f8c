// What one statement at a time is asked of: a pool, or an account's share of one.

import type { QueryConfig, QueryResultRow } from 'pg';

export type Queries = {
  query<Row extends QueryResultRow>(
    statement: string | QueryConfig,
    values?: unknown[],
  ): Promise<{ rows: Row[]; rowCount: number | null }>;
};
