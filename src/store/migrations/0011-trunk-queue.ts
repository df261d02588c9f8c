// Which trunk a call waits for and how long; what trunks allow, across nodes.

import type { Migration } from './migration.ts';

export const trunkQueue: Migration = {
  version: 11,
  name: 'trunk-queue',
  sql: `
-- The trunk that carries it; null: none, it is dialled directly.
alter table calls add column trunk text;
-- Not dialled any more after this.
alter table calls add column dial_before timestamptz(3);
update calls set trunk = request ->> 'trunk', dial_before = accepted_at + interval '5 minutes';
alter table calls alter column dial_before set not null;

-- The clock of a trunk with callsPerSecond. Microseconds: a hundred calls a second are 10 ms apart.
create table trunk_pacing (
  trunk text primary key,
  next_start_at timestamptz not null
);

-- Legs that may be on the wire of a trunk with limits.
create table trunk_slots (
  call_id text primary key,
  trunk text not null,
  owner_id text not null,
  taken_at timestamptz(3) not null
);
create index trunk_slots_by_trunk on trunk_slots (trunk);
`,
};
