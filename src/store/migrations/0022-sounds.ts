// Sounds that accounts have uploaded, each once, as it goes out.

import type { Migration } from './migration.ts';

export const sounds: Migration = {
  version: 22,
  name: 'sounds',
  sql: `
create table sounds (
  account_id text not null,
  name text not null,
  -- 8 kHz: a byte is an eighth of a millisecond.
  mulaw bytea not null,
  -- Another one with each upload.
  version uuid not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (account_id, name)
);
-- Speech in µ-law does not get smaller by what PostgreSQL compresses with.
alter table sounds alter column mulaw set storage external;
`,
};
