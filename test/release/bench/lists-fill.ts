// Fills PostgreSQL with ended calls, in the columns that lists read. This also works with the
// schemas of older commits, which have no column for the verdict and no totals.

import type { Pool } from 'pg';

export type Filling = { readonly calls: number; readonly bots: number };

/** The calls were accepted over this time, which is within their retention. */
const days = 29;
/** Calls of one statement. */
const chunk = 250_000;

/**
 * Half of the calls belong to the first bot, and half of the others to the second, and so on.
 * Outcomes have the shares of a campaign. `expired` is rare: one call in 200,000.
 */
const insertStatement = (hasVerdict: boolean, end: End) => `
insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, trunk, request, state, status, outcome,
  ${hasVerdict ? 'verdict, ' : ''}sip_status, ${end.columns}, accepted_at, dial_before, dial_started_at, owner_id, ringing_at, answered_at, ended_at,
  end_published_at, last_event_sequence, published_event_sequence)
select 'call-' || gen_random_uuid(), 'sid-' || n, md5(n::text), 'test', 'bench',
  'bot-' || least(1 + floor(-log(2, 1 - (random() * 0.999)::numeric)), $3), 'carrier',
  jsonb_build_object('target', jsonb_build_object('kind', 'tel', 'number', (12020000000 + n / 3)::text),
    'caller', '15559876543', 'trunk', 'carrier', 'machineDetection', 'detect', 'ringTimeoutMs', 60000,
    'metadata', jsonb_build_object('orderId', n, 'list', 'spring-' || n % 40)) ||
    case when n % 10 < 8 then jsonb_build_object('campaign', 'campaign-' || n % 20) else '{}' end,
  'ended', case when is_answered then 'completed' else 'failed' end, outcome,
  ${hasVerdict ? 'case when is_answered then verdict end, ' : ''}case when is_answered then 200 else 486 end,
  ${end.values},
  at, at, at, 'gone', at, case when is_answered then at end, at + interval '20 s', at + interval '21 s', 6, 6
from (
  select n, at, outcome, outcome in ('completed', 'machine') as is_answered,
    case outcome when 'completed' then 'amd_human_detected' else 'amd_machine_detected' end as verdict
  from (
    select n, now() - (n - 0.5) * interval '${days} days' / $4::integer as at,
      case when n % 200000 = 199999 then 'expired' when n % 100 < 45 then 'completed' when n % 100 < 65 then 'machine'
        when n % 100 < 83 then 'no-answer' when n % 100 < 95 then 'busy' else 'declined' end as outcome
    from generate_series($1::integer, $2::integer) n
  ) as numbered
) as call`;

type End = { readonly columns: string; readonly values: string };

const reasons: End = { columns: 'reason, reason_code', values: `'OK', 'Caller-disconnected'` };
/** Older commits store the event that ended the call. */
const endEvent: End = {
  columns: 'end_event',
  values: `jsonb_build_object('data', jsonb_build_object('reason', 'OK', 'reasonCode', 'Caller-disconnected',
    'outcome', outcome, 'machineDetection', case when is_answered then verdict end))`,
};

const keyStatement = `
update calls set idempotency_key = 'key-' || sid where call_id in (
  select call_id from calls where accepted_at > now() - interval '${days} days' order by accepted_at limit 1000)`;

const totalsStatement = `
insert into call_totals (account_id, outcome, status, verdict, slot, bot_id, trunk, calls, answered, short, talk_ms)
select account_id, outcome, status, coalesce(verdict, ''), date_bin('15 minutes', accepted_at, timestamptz '2000-01-01 00:00:00+00'),
  bot_id, trunk, count(*), count(answered_at), count(*) filter (where ended_at - answered_at <= interval '6 seconds'),
  coalesce(sum(extract(epoch from ended_at - answered_at) * 1000), 0)
from calls where end_published_at is not null group by 1, 2, 3, 4, 5, 6, 7`;

export async function fillCalls(pool: Pool, { calls, bots }: Filling): Promise<void> {
  const columns = await columnsOf(pool);
  const isNew = columns.includes('verdict');
  const insert = insertStatement(isNew, columns.includes('end_event') ? endEvent : reasons);
  // Building indexes over a full table takes a tenth of the time.
  const { rows: indexes } = await pool.query<{ indexname: string; indexdef: string }>(
    `select indexname, indexdef from pg_indexes where tablename = 'calls' and indexname <> 'calls_pkey'`,
  );
  for (const { indexname } of indexes) await pool.query(`drop index ${indexname}`);
  for (let first = calls; first > 0; first -= chunk) {
    await pool.query(insert, [Math.max(1, first - chunk + 1), first, bots, calls]);
  }
  for (const { indexdef } of indexes) await pool.query(indexdef);
  await pool.query(keyStatement);
  if (isNew) await pool.query(totalsStatement);
  for (const table of ['calls', ...(isNew ? ['call_totals'] : [])]) {
    await pool.query(`vacuum (analyze) ${table}`);
  }
}

async function columnsOf(pool: Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select column_name as name from information_schema.columns where table_name = 'calls'`,
  );
  return rows.map((row) => row.name);
}
