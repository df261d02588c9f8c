// The trunks' limits across all nodes, and what each process has taken from them.

export const trunks = `
-- The clock of a trunk that has callsPerSecond.
create table trunk_pacing (
  trunk text primary key,
  -- Microseconds matter: a hundred calls a second are 10 ms apart.
  next_start_at timestamptz not null
);

-- Legs that may be on the wire of a trunk with limits. A second leg of a call has its own slot. The
-- id of the first leg is the call's own id.
create table trunk_slots (
  leg_id text primary key,
  call_id text not null,
  trunk text not null,
  owner_id text not null,
  taken_at timestamptz(3) not null,
  -- When the leg's INVITE may leave.
  start_at timestamptz not null
);
create index trunk_slots_by_trunk on trunk_slots (trunk);

-- The last take of each process from each source, if it took a call or was requested twice. A
-- source is a trunk, or '' for calls that need no trunk.
create table call_takes (
  owner_id text not null,
  source text not null,
  take_id integer not null,
  call_ids text[] not null,
  -- A copy of ruled_accounts.
  ruled_accounts text[] not null,
  primary key (owner_id, source)
);
`;
