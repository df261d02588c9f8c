// Calls that wait for a calling rule: `permits.ts` makes them wait, and the sweep releases them
// when their time has come (`src/store/calls/call-takes.ts`). A change of the rules releases them
// early, and so does a suppression, which ends them.

import { setTimeout as pause } from 'node:timers/promises';
import type { Queries } from '../queries.ts';
import { calleeNumber } from '../schema/calls.ts';
import { inForce } from './suppressions.ts';

/** Rows per statement. A statement with this many takes about 50 ms. */
const batchRows = 2_000;
/** Lets other statements run on the embedded database's only session. */
const pauseMs = 5;

const releaseStatement = releasing('true');

// A call to a suppressed sip: URI without a number ends when its time has come. Few such calls wait
// for a rule.
const releaseSuppressedStatement = releasing(
  `exists (select from suppressions s where s.account_id = calls.account_id
    and s.address = '+' || ${calleeNumber.text} and ${inForce.text})`,
);

/** With the number, the planner uses the index of the calls to it. */
const releaseNumberStatement = `
update calls set not_before = $2 where call_id in (
  select call_id from calls
  where account_id = $1 and ${calleeNumber.text} = $3 and not_before > $2
  order by call_id for update)`;

function releasing(condition: string): string {
  return `
update calls set not_before = $2 where call_id in (
  select call_id from calls
  where account_id = $1 and not_before > $2 and ${condition}
  order by call_id limit ${batchRows} for update)`;
}

/**
 * Makes the account's calls that wait for a rule due now, so that they are checked against the
 * current rules. Call this after a change of the rules, or after the end of a suppression. Takes a
 * second for 100,000 calls. Calls that begin to wait meanwhile know the change already.
 */
export async function releaseHeld(sql: Queries, accountId: string): Promise<void> {
  await releaseAll(sql, releaseStatement, accountId);
}

/**
 * Makes the account's calls to a suppressed number due now, so that they end soon.
 *
 * @param number E.164 digits; if omitted, the calls to all suppressed numbers
 */
export async function releaseSuppressed(
  sql: Queries,
  accountId: string,
  number?: string,
): Promise<void> {
  if (number === undefined) await releaseAll(sql, releaseSuppressedStatement, accountId);
  else await sql.query(releaseNumberStatement, [accountId, await timeOf(sql), number]);
}

async function releaseAll(sql: Queries, statement: string, accountId: string): Promise<void> {
  const now = await timeOf(sql);
  for (;;) {
    const { rowCount } = await sql.query(statement, [accountId, now]);
    if ((rowCount ?? 0) < batchRows) return;
    await pause(pauseMs);
  }
}

async function timeOf(sql: Queries): Promise<Date> {
  const { rows } = await sql.query<{ now: Date }>('select clock_timestamp() as now');
  return rows[0]?.now ?? new Date();
}
