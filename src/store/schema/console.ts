// Who is signed in at the console, and what it shows of a call beside its events.

export const consoleTables = `
-- Links that sign in once. Neither a link nor its session can be made from its hash.
create table console_links (
  token_hash text primary key,
  app_id text not null,
  -- Ids of the app's credentials that opened the link: the session ends with them.
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

-- Written once, at the end of the call. Each column is compressed, and null if nothing was captured.
create table call_captures (
  day date not null,
  call_id text not null,
  -- SIP messages, as JSON.
  sip bytea,
  -- How loud the call was in both directions; no audio.
  audio bytea,
  -- What happened in the call and is no event of it, as JSON: the bot's marks, commands, words.
  notes bytea,
  primary key (call_id, day)
) partition by list (day);
`;
