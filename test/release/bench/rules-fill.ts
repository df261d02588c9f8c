// Fills a database with the past of an account with calling rules: records of calls to 1 M numbers,
// and suppressed numbers which it never calls.

import type { Pool } from 'pg';

/** Rows of one statement. */
const chunk = 250_000;
const numbers = 1_000_000;
/** Numbers that were called have this prefix, and one digit more tells new numbers from them. */
export const calledNumber = (index: number): string =>
  `1602${String(index % numbers).padStart(7, '0')}`;

const recordStatement = `
insert into call_records (account_id, accepted_at, call_id, app_id, bot_id, trunk, number, caller,
  dialed_at, ringing_at, answered_at, ended_at, outcome, campaign, rule_set, rule_set_version)
select $1, at, 'call-past-' || n, 'app-1', 'bot-1', 'sandbox',
  '1602' || lpad((n % ${numbers})::text, 7, '0'), '14155550199', at, at,
  case when n % 3 = 0 then at end, at, case when n % 3 = 0 then 'completed' else 'no-answer' end,
  'spring', 'default', 1
from (
  select n, now() - interval '300 days' + n * interval '1 second' as at
  from generate_series($2::integer, $3::integer) n
) as past`;

const suppressionStatement = `
insert into suppressions (account_id, address, reason, source, created_at, app_id)
select $1, '+1808' || lpad(n::text, 7, '0'), 'do-not-call', 'list', now(), 'app-1'
from generate_series($2::integer, $3::integer) n`;

export async function addRecords(
  pool: Pool,
  accountId: string,
  from: number,
  to: number,
): Promise<void> {
  await inChunks(pool, recordStatement, accountId, from, to);
  await pool.query('vacuum (analyze) call_records');
}

export async function addSuppressions(pool: Pool, accountId: string, count: number): Promise<void> {
  await inChunks(pool, suppressionStatement, accountId, 1, count);
  await pool.query('vacuum (analyze) suppressions');
}

async function inChunks(
  pool: Pool,
  statement: string,
  accountId: string,
  from: number,
  to: number,
): Promise<void> {
  for (let first = from; first <= to; first += chunk) {
    await pool.query(statement, [accountId, first, Math.min(to, first + chunk - 1)]);
  }
}
