// Defines the SQL function that claims queued calls for a process ("takes" them). It takes calls
// either from a trunk (with or without limits) or from those that are dialled directly. If the
// function's text changes, even in a comment, the next start replaces the function (see
// src/store/schema.ts).

import { ruledAccountsLock } from '../rules/ruled-accounts.ts';

/**
 * Returns the calls that this process claimed with take `for_take`. If there hasn't been such a
 * take yet, claims the calls that have waited longest. The last row doesn't contain a call. It says
 * when more calls can be taken, how long the server worked, and what the trunk's clock shows now,
 * so that starts can be given back (`../calls/unused-starts.ts`). The process numbers its takes so
 * that it can repeat a take after a lost response. The trunk's clock row is only locked while the
 * server is working, never while a node is deciding.
 */
export const takeCalls = `
-- What take for_take of this process holds, or what it takes now: the calls that have waited longest,
-- then a row without a call, which says when more could be had and how long the server was at work.
-- The process numbers its takes, so that it can ask again for an answer that was lost. The row of the
-- trunk's clock is locked only while the server works, and never while a node thinks.
create function take_calls(for_take integer, is_repeated boolean, for_owner text, of_source text, wanted integer,
  horizon_ms double precision, interval_ms double precision, most_up integer)
returns table (start_in_ms double precision, retry_in_ms double precision, took_ms double precision, call_id text,
  sid text, conversation_id text, account_id text, app_id text, bot_id text, accepted_at timestamptz, request jsonb,
  is_ruled boolean, next_start text)
language plpgsql as $$
#variable_conflict use_column
declare
  known integer;
  held text[];
  ruled text[];
  first_at timestamptz := clock_timestamp();
  first_in_ms double precision := 0;
  most integer := wanted;
  taken integer := 0;
  is_limited boolean := interval_ms > 0 or most_up is not null;
begin
  select take_id, call_ids, ruled_accounts into known, held, ruled from call_takes
  where owner_id = for_owner and source = of_source for update;
  if not found then
    -- The list of ruled accounts must not change between the copy and the commit.
    perform pg_advisory_xact_lock_shared(${ruledAccountsLock});
    insert into call_takes (owner_id, source, take_id, call_ids, ruled_accounts)
    select for_owner, of_source, 0, '{}', coalesce((select array_agg(account_id) from ruled_accounts), '{}')
    on conflict do nothing;
    select take_id, call_ids, ruled_accounts into known, held, ruled from call_takes
    where owner_id = for_owner and source = of_source for update;
  end if;
  -- An older number than that of the last take: the statement came late, and nobody waits for its
  -- answer any more.
  if for_take <= known then
    if for_take = known then
      return query select extract(epoch from coalesce(s.start_at, first_at) - clock_timestamp())::double precision * 1000,
        null::double precision, null::double precision, c.call_id, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id,
        c.accepted_at, c.request, c.account_id = any(ruled), null::text
      from calls c left join trunk_slots s on s.leg_id = c.call_id
      where c.call_id = any(held) and c.owner_id = for_owner and c.ended_at is null
      order by c.accepted_at, c.call_id;
    end if;
    retry_in_ms := 0;
    took_ms := extract(epoch from clock_timestamp() - statement_timestamp()) * 1000;
    return next;
    return;
  end if;
  if is_limited then
    insert into trunk_pacing (trunk, next_start_at) values (of_source, clock_timestamp()) on conflict do nothing;
    select next_start_at into first_at from trunk_pacing where trunk = of_source for update;
    first_at := greatest(first_at, clock_timestamp());
    first_in_ms := extract(epoch from first_at - clock_timestamp()) * 1000;
    if interval_ms > 0 then
      most := least(most, floor((horizon_ms - first_in_ms) / interval_ms)::integer + 1);
      retry_in_ms := case when most < 1 then first_in_ms - horizon_ms end;
    end if;
    -- A statement of its own, after the lock: it must see what others took before.
    if most_up is not null then
      most := least(most, most_up - (select count(*) from trunk_slots where trunk = of_source)::integer);
    end if;
  end if;
  if most > 0 then
    -- The mark "an INVITE may have left".
    return query with picked as (
      select call_id from calls
      where end_published_at is null and not_before is null and ended_at is null and dial_started_at is null
        and coalesce(trunk, '') = of_source and dial_before > clock_timestamp()
      order by accepted_at, call_id limit most
      for update skip locked
    ), claimed as (
      update calls c set dial_started_at = clock_timestamp(), owner_id = for_owner, state = 'dialing', status = 'dialing'
      from picked where c.call_id = picked.call_id
      returning c.call_id, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id, c.accepted_at, c.request
    ), numbered as (
      select claimed.*, row_number() over (order by accepted_at, call_id) - 1 as number from claimed
    ), slots as (
      insert into trunk_slots (leg_id, call_id, trunk, owner_id, taken_at, start_at)
      select call_id, call_id, of_source, for_owner, clock_timestamp(),
        first_at + number * interval_ms * interval '1 millisecond'
      from numbered where is_limited
    ), noted as (
      update call_takes set take_id = for_take, call_ids = (select array_agg(call_id) from claimed)
      where owner_id = for_owner and source = of_source and exists (select from claimed)
    )
    select extract(epoch from first_at - clock_timestamp())::double precision * 1000 + number * interval_ms,
      null::double precision, null::double precision, call_id, sid, conversation_id, account_id, app_id, bot_id, accepted_at,
      request, account_id = any(ruled), null::text
    from numbered order by number;
    get diagnostics taken = row_count;
    if is_limited and taken > 0 then
      update trunk_pacing set next_start_at = first_at + taken * interval_ms * interval '1 millisecond'
      where trunk = of_source returning next_start_at::text into next_start;
    end if;
    -- All that was asked for: there may be more.
    if taken = most then
      retry_in_ms := greatest(0, first_in_ms + taken * interval_ms - horizon_ms);
    end if;
  end if;
  if is_repeated and taken = 0 then
    update call_takes set take_id = for_take, call_ids = '{}' where owner_id = for_owner and source = of_source;
  end if;
  call_id := null;
  is_ruled := null;
  start_in_ms := null;
  took_ms := extract(epoch from clock_timestamp() - statement_timestamp()) * 1000;
  return next;
end $$;
`;
