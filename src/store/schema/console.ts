// Console sessions, and the call data that the console shows besides events.

export const consoleTables = `
-- Links that sign a person in once. Neither a link nor its session can be derived from its hash.
create table console_links (
  token_hash text primary key,
  app_id text not null,
  -- Ids of the app's credentials with which the link was opened. The session ends when they do.
  opened_by text[] not null,
  expires_at timestamptz(3) not null
);
create table console_sessions (
  token_hash text primary key,
  app_id text not null,
  opened_by text[] not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);

-- Written once, at the end of the call. Each column is compressed, and null if nothing was
-- captured.
create table call_captures (
  day date not null,
  call_id text not null,
  -- SIP messages, as JSON.
  sip bytea,
  -- The loudness of the call in both directions, without audio.
  audio bytea,
  -- Details of the call that are not events, as JSON: the bot's marks, commands, words.
  notes bytea,
  primary key (call_id, day)
) partition by list (day);
`;
