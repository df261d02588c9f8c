// Defines the SQL function that reserves a slot on a trunk for a second leg, which can't wait in
// the queue like a first leg.

/**
 * Returns a slot for one leg, and how many milliseconds to wait before sending its INVITE. Returns
 * no row if the trunk is full. If the call is repeated after a lost response, it returns the same
 * slot.
 */
export const takeSlot = `
-- A slot for one leg, and in how long its INVITE may leave. No row: the trunk is full. The same again,
-- after an answer that was lost, gives the same slot.
create function take_slot(for_leg text, of_call text, of_trunk text, for_owner text, interval_ms double precision,
  most_up integer)
returns table (start_in_ms double precision, took_ms double precision)
language plpgsql as $$
#variable_conflict use_column
declare
  begins timestamptz;
begin
  select start_at into begins from trunk_slots where leg_id = for_leg;
  if begins is null then
    insert into trunk_pacing (trunk, next_start_at) values (of_trunk, clock_timestamp()) on conflict do nothing;
    select next_start_at into begins from trunk_pacing where trunk = of_trunk for update;
    begins := greatest(begins, clock_timestamp());
    -- A statement of its own, after the lock: it must see what others took before.
    if most_up is not null and most_up <= (select count(*) from trunk_slots where trunk = of_trunk) then
      return;
    end if;
    insert into trunk_slots (leg_id, call_id, trunk, owner_id, taken_at, start_at)
    values (for_leg, of_call, of_trunk, for_owner, clock_timestamp(), begins);
    if interval_ms > 0 then
      update trunk_pacing set next_start_at = begins + interval_ms * interval '1 millisecond' where trunk = of_trunk;
    end if;
  end if;
  start_in_ms := extract(epoch from begins - clock_timestamp()) * 1000;
  took_ms := extract(epoch from clock_timestamp() - statement_timestamp()) * 1000;
  return next;
end $$;
`;
