// Calls that wait for a calling rule: `permits.ts` makes them wait, and the sweep releases them
// when their time has come (`src/store/calls/call-takes.ts`). A change of the rules releases them
// early.

import { setTimeout as pause } from 'node:timers/promises';
import type { Queries } from '../queries.ts';

/** Rows per statement. A statement with this many takes about 50 ms. */
const batchRows = 2_000;
/** Lets other statements run on the embedded database's only session. */
const pauseMs = 5;

const releaseStatement = `
update calls set not_before = $2 where call_id in (
  select call_id from calls
  where account_id = $1 and not_before > $2 order by call_id limit ${batchRows} for update)`;

/**
 * Makes the account's calls that wait for a rule due now, so that they are checked against the
 * current rules. Call this after a change of the rules, or after the end of a suppression. Takes a
 * second for 100,000 calls. Calls that begin to wait meanwhile know the change already.
 */
export async function releaseHeld(sql: Queries, accountId: string): Promise<void> {
  const { rows } = await sql.query<{ now: Date }>('select clock_timestamp() as now');
  const now = rows[0]?.now ?? new Date();
  for (;;) {
    const { rowCount } = await sql.query(releaseStatement, [accountId, now]);
    if ((rowCount ?? 0) < batchRows) return;
    await pause(pauseMs);
  }
}
