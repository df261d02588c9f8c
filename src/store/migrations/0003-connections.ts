// Connections to model providers; what is secret in them is sealed.

import type { Migration } from './migration.ts';

export const connections: Migration = {
  version: 3,
  name: 'connections',
  sql: `
create table connections (
  connection_id text primary key,
  account_id text not null,
  name text not null,
  provider text not null,
  model text not null,
  status text not null,
  -- What else the create body said, with masks in the place of secrets: a read needs no key.
  settings jsonb not null,
  -- JSON of the secret values where they stood in the body, encrypted.
  secrets bytea not null,
  created_on timestamptz(3) not null,
  modified_on timestamptz(3) not null
);
create index connections_by_account on connections (account_id, created_on desc, connection_id desc);
`,
};
