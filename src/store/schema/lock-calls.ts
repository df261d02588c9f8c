// Defines the SQL functions that lock what the check of taken calls decides about. Each function
// runs several statements, because a statement only sees what was committed before it began, and
// each of these has to see what the lock before it has waited for. If the text of a function
// changes, even in a comment, the next start replaces the function (see src/store/schema.ts).

import { fewRows } from '../few-rows.ts';
import {
  ftcOutcome,
  isDecided,
  openAbandonment,
  peopleOutcomes,
} from '../rules/campaign-outcomes.ts';
import { rulesLock } from '../rules/current-rules.ts';
import { calleeNumber, campaign as campaignOf } from './calls.ts';

/** No rule counts more attempts, or older ones (`src/rules/rule-set.ts`). */
export const maxAttempts = 100;
export const maxAttemptAgeDays = 366;

/**
 * Locks the calls that still belong to this process, and returns what is known about them. The
 * order of the locks is part of the contract: see `src/store/rules/permits.ts`.
 */
export const lockCalls = `
create function lock_calls(for_owner text, of_time timestamptz, of_calls text[], of_accounts text[],
  to_addresses text[], of_rule_sets text[])
returns table (call_id text, is_counted boolean, call_ids text[], attempted_at timestamptz[],
  answered_at timestamptz, abandoned_at timestamptz, is_suppressed boolean, suppressed_until timestamptz,
  rule_set_version integer, document text, is_deleted boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  mine text[];
  counted text[];
  has_missing boolean;
  is_kept boolean;
begin
  -- A change of an account's rules waits for the end of this transaction. Once it has been confirmed,
  -- no call is taken, or begins to wait, under the rules before it.
  select array_agg(call_id), array_agg(call_id) filter (where is_counted), bool_or(is_missing), bool_and(is_kept)
  into mine, counted, has_missing, is_kept
  from (
    select c.call_id, c.ftc_outcome is not null as is_counted,
      pg_advisory_xact_lock_shared(${rulesLock}, hashtext(g.account_id)) is not null as is_kept,
      address like '+%' and not exists (
        select from called_numbers k where k.account_id = g.account_id and k.number = address) as is_missing
    from unnest(of_calls, of_accounts, to_addresses) as g(call_id, account_id, address)
    join calls c using (call_id)
    where ${fewRows('g.call_id')} and c.owner_id = for_owner and c.dial_started_at is not null
      and c.ended_at is null
    order by c.call_id for update of c
  ) as ours;
  -- A number that the account has not called under rules before: from the calls that it has sent.
  -- Inserting comes before locking, so that two transactions cannot wait for each other.
  if has_missing then
    insert into called_numbers (account_id, number, call_ids, attempted_at, answered_at, abandoned_at, used_at)
    select account_id, number, coalesce(call_ids, '{}'), coalesce(attempted_at, '{}'), answered_at,
      abandoned_at, of_time
    from (
      select distinct account_id, address as number
      from unnest(of_calls, of_accounts, to_addresses) as g(call_id, account_id, address)
      where call_id = any(mine) and address like '+%' and not exists (
        select from called_numbers k where k.account_id = g.account_id and k.number = address)
    ) as missing cross join lateral (
      select array_agg(call_id order by dialed_at) as call_ids,
        array_agg(dialed_at order by dialed_at) as attempted_at, max(answered_at) as answered_at,
        max(abandoned_at) as abandoned_at
      from (
        (select call_id, dialed_at, answered_at,
           case when 'abandoned' in (ftc_outcome, ofcom_outcome) then ended_at end as abandoned_at
         from call_records r
         where r.account_id = missing.account_id and r.number = substr(missing.number, 2)
           and dialed_at is not null and accepted_at > of_time - interval '${maxAttemptAgeDays} days'
         order by accepted_at desc limit ${maxAttempts})
        union all
        (select call_id, dialed_at, answered_at, null from calls c
         where c.account_id = missing.account_id and ${calleeNumber.text} = substr(missing.number, 2)
           and dialed_at is not null and end_published_at is null
         order by accepted_at desc limit ${maxAttempts})
      ) as sent
    ) as history
    order by account_id, number
    on conflict do nothing;
  end if;
  -- A call is noted as abandoned when it is settled, so calls that are not settled are looked at too.
  return query select g.call_id, g.call_id = any(coalesce(counted, '{}')), n.call_ids, n.attempted_at,
    n.answered_at, greatest(n.abandoned_at, case when r.document #> '{rest,afterAbandoned}' is not null then (
      ${openAbandonment('g.account_id', 'substr(g.address, 2)')}) end), s.address is not null, s.until, r.version, r.document::text,
    r.deleted_at is not null
  from unnest(of_calls, of_accounts, to_addresses, of_rule_sets) as g(call_id, account_id, address, rule_set)
  left join (
    select w.call_id, k.call_ids, k.attempted_at, k.answered_at, k.abandoned_at
    from unnest(of_calls, of_accounts, to_addresses) as w(call_id, account_id, address)
    join called_numbers k on k.account_id = w.account_id and k.number = w.address
    where ${fewRows('w.call_id')} and w.call_id = any(mine)
    order by k.account_id, k.number for update of k
  ) as n on n.call_id = g.call_id
  left join suppressions s on s.account_id = g.account_id and s.address = g.address
    and (s.until is null or s.until > of_time)
  left join rule_sets r on r.account_id = g.account_id and r.name = g.rule_set and r.is_current
  where ${fewRows('g.call_id')} and g.call_id = any(mine);
end $$;
`;

/** Campaigns that have begun, with the counts of their calls that are not settled. */
const countCampaigns = (accounts: string, campaigns: string) => `
select c.account_id, c.campaign, c.rule_set, c.began_at, c.window_from, c.decided,
  c.answered_by_person, c.abandoned, c.held_since, c.held_until, c.pause_ms, c.probe_call_id,
  open.in_flight, open.decided, open.answered_by_person, open.abandoned
from unnest(${accounts}, ${campaigns}) as wanted(account_id, campaign)
join campaigns c using (account_id, campaign)
cross join lateral (
  select
    (count(*) filter (where ftc_outcome = 'undecided' and rule is null and ended_at is null))::integer
      as in_flight,
    (count(*) filter (where ${isDecided}))::integer as decided,
    (count(*) filter (where ${isDecided} and ${ftcOutcome} in (${peopleOutcomes})))::integer
      as answered_by_person,
    (count(*) filter (where ${isDecided} and ${ftcOutcome} = 'abandoned'))::integer as abandoned
  from calls
  where account_id = c.account_id and ${campaignOf.text} = c.campaign
    and dial_started_at is not null and end_published_at is null
) as open`;

/** Reads the campaigns ($1 and $2), without locking them. */
export const readCampaigns = countCampaigns('$1::text[]', '$2::text[]');

/**
 * Locks campaigns that have begun, in the order of their keys, and counts their calls that are not
 * settled.
 */
export const lockCampaigns = `
create function lock_campaigns(of_accounts text[], of_campaigns text[])
returns table (account_id text, campaign text, rule_set text, began_at timestamptz, window_from timestamptz,
  decided integer, answered_by_person integer, abandoned integer, held_since timestamptz,
  held_until timestamptz, pause_ms integer, probe_call_id text,
  in_flight integer, open_decided integer, open_answered_by_person integer, open_abandoned integer)
language plpgsql as $$
#variable_conflict use_column
begin
  perform from unnest(of_accounts, of_campaigns) as wanted(account_id, campaign)
  join campaigns c using (account_id, campaign)
  order by account_id, campaign for update of c;
  return query ${countCampaigns('of_accounts', 'of_campaigns')};
end $$;
`;
