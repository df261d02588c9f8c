// What another process needs to end a leg, apart from its call: a call may have a second one.

import type { Migration } from './migration.ts';

export const callLegs: Migration = {
  version: 21,
  name: 'call-legs',
  sql: `
-- The first leg's id is that of its call. What is not here is in calls.leg, written by a version before.
create table call_legs (
  call_id text not null,
  leg_id text not null,
  leg jsonb not null,
  primary key (call_id, leg_id)
);
`,
};
