// Taking calls of a trunk in one statement: its clock's row is held while the server works, and never for a node's sake.

import type { Migration } from './migration.ts';

export const trunkTake: Migration = {
  version: 14,
  name: 'trunk-take',
  sql: `
-- The calls that have waited longest, each with a slot and a start, then a row without a call: when more could be had.
create function take_trunk_calls(of_trunk text, for_owner text, wanted integer, horizon_ms double precision,
  interval_ms double precision, most_up integer)
returns table (start_at_ms double precision, clock_ms double precision, retry_in_ms double precision, call_id text,
  sid text, conversation_id text, account_id text, app_id text, bot_id text, accepted_at timestamptz, request jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  first_at timestamptz;
  first_in_ms double precision;
  most integer;
  taken integer;
begin
  insert into trunk_pacing (trunk, next_start_at) values (of_trunk, clock_timestamp()) on conflict do nothing;
  select next_start_at into first_at from trunk_pacing where trunk = of_trunk for update;
  first_at := greatest(first_at, clock_timestamp());
  first_in_ms := extract(epoch from first_at - clock_timestamp()) * 1000;
  most := wanted;
  if interval_ms > 0 then
    most := least(most, floor((horizon_ms - first_in_ms) / interval_ms)::integer + 1);
    retry_in_ms := case when most < 1 then first_in_ms - horizon_ms end;
  end if;
  -- A statement of its own, after the lock: it must see what others took before.
  if most_up is not null then
    most := least(most, most_up - (select count(*) from trunk_slots where trunk = of_trunk)::integer);
  end if;
  if most > 0 then
    -- Claimed like by the queue's message: "an INVITE may have left". The index of open calls is known by end_published_at.
    return query with picked as (
      select call_id from calls
      where end_published_at is null and ended_at is null and dial_started_at is null
        and trunk = of_trunk and dial_before > clock_timestamp()
      order by accepted_at, call_id limit most
      for update skip locked
    ), claimed as (
      update calls c set dial_started_at = clock_timestamp(), owner_id = for_owner, state = 'dialing', status = 'dialing'
      from picked where c.call_id = picked.call_id
      returning c.call_id, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id, c.accepted_at, c.request
    ), slots as (
      insert into trunk_slots (call_id, trunk, owner_id, taken_at)
      select call_id, of_trunk, for_owner, clock_timestamp() from claimed
    )
    select extract(epoch from first_at)::double precision * 1000
        + (row_number() over (order by accepted_at, call_id) - 1) * interval_ms,
      null::double precision, null::double precision, claimed.*
    from claimed order by accepted_at, call_id;
    get diagnostics taken = row_count;
    if taken > 0 then
      update trunk_pacing set next_start_at = first_at + taken * interval_ms * interval '1 millisecond'
      where trunk = of_trunk;
    end if;
    -- All that was asked for: there may be more.
    if taken = most then
      retry_in_ms := greatest(0, first_in_ms + taken * interval_ms - horizon_ms);
    end if;
  end if;
  clock_ms := extract(epoch from clock_timestamp()) * 1000;
  return next;
end $$;
`,
};
