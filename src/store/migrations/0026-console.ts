// Who is signed in at the console, and what it shows of a call beside its events.

import type { Migration } from './migration.ts';

export const consoleTables: Migration = {
  version: 26,
  name: 'console',
  sql: `
-- A link that signs in once, and what came of it: neither can be made from its hash.
create table console_links (
  token_hash text primary key,
  app_id text not null,
  expires_at timestamptz(3) not null
);
create table console_sessions (
  token_hash text primary key,
  app_id text not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);

-- The app of the first embedded start has every scope, the new one too.
update apps set scopes = scopes || '["Operate"]' where app_id = 'app-dev' and not scopes ? 'Operate';

-- Written once, at the end of the call, compressed. \`sip\`: messages as JSON; \`audio\`: how loud it was in both directions; no audio.
create table call_captures (
  call_id text primary key,
  sip bytea,
  audio bytea
);
`,
};
