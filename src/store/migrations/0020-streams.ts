// Audio streams to bots: the secret of an app that signs them, where a bot is, and calls by the name that their bots know.

import type { Migration } from './migration.ts';

export const streams: Migration = {
  version: 20,
  name: 'streams',
  sql: `
alter table apps
  add column stream_secret bytea,
  add column previous_stream_secret bytea,
  add column previous_stream_secret_until timestamptz(3);
alter table bots
  add column stream_url text,
  add column stream_query bytea,
  add column stream_connect text;
create index calls_by_call_sid on calls (substr(encode(sha256(call_id::bytea), 'hex'), 1, 32))
  where request ? 'stream';
`,
};
