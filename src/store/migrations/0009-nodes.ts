// The processes that share this database, each with its lease.

import type { Migration } from './migration.ts';

export const nodes: Migration = {
  version: 9,
  name: 'nodes',
  sql: `
create table nodes (
  -- NODE_ID and a random part of this start: what calls.owner_id says.
  owner_id text primary key,
  node_id text not null,
  version text not null,
  started_at timestamptz(3) not null,
  renewed_at timestamptz(3) not null,
  lease_until timestamptz(3) not null,
  -- Its lease ran out and another process said so: it may state nothing more.
  lost_at timestamptz(3),
  calls integer not null,
  draining boolean not null
);
`,
};
