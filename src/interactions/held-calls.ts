// Counts the calls that wait, by the calling rule that holds them.

import type { RuleName } from '../calls/rules/rule-words.ts';
import type { Queries } from '../store/queries.ts';
import { sql } from '../store/sql.ts';
import { inScope } from './call-conditions.ts';
import type { AppScope } from './call-queries.ts';

export type HeldCalls = {
  readonly rule: RuleName;
  readonly calls: number;
  /** When the next of these calls is checked again. */
  readonly nextAt: string;
};

type Columns = {
  readonly rule: RuleName;
  readonly calls: number;
  readonly next_at: Date;
};

/** The limit on an account's waiting calls bounds the rows that this reads. */
export async function heldCalls(queries: Queries, scope: AppScope): Promise<readonly HeldCalls[]> {
  const { rows } = await queries.query<Columns>(sql`
    select waits_for as rule, count(*)::integer as calls, min(not_before) as next_at from calls
    where not_before is not null and waits_for is not null and ${inScope(scope)}
    group by waits_for order by calls desc, rule`);
  return rows.map(({ rule, calls, next_at }) => ({ rule, calls, nextAt: next_at.toISOString() }));
}
