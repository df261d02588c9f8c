// Apps with their credentials, their limits and their bots, and the sounds of their accounts.

export const apps = `
create table apps (
  app_id text primary key,
  account_id text not null,
  name text not null,
  -- Bot ids, or only * for every bot of the account.
  bots jsonb not null,
  scopes jsonb not null,
  jwt_algorithm text not null,
  -- Verifies the app's tokens: the shared secret, or a JWKS document. Encrypted.
  jwt_secret bytea not null,
  -- The secret before the last rotation, and until when it still verifies tokens.
  previous_jwt_secret bytea,
  previous_jwt_secret_until timestamptz(3),
  -- The longest lifetime of a token, in seconds. Null: the token alone decides.
  token_max_ttl_s integer,
  -- SHA-256. The key is random and long, so a slow hash would add nothing.
  api_key_hash text not null,
  previous_api_key_hash text,
  previous_api_key_until timestamptz(3),
  -- Signs the requests for audio streams to bots. Encrypted.
  stream_secret bytea not null,
  previous_stream_secret bytea,
  previous_stream_secret_until timestamptz(3),
  -- What the app may dial, and how many calls: guards against toll fraud. Null: no limits.
  limits jsonb,
  -- How numbers without a + are read. Null: a number is valid only with its +.
  default_country text,
  bare_numbers text,
  created_at timestamptz(3) not null,
  revoked_at timestamptz(3)
);
create unique index apps_api_key on apps (api_key_hash);
create unique index apps_previous_api_key on apps (previous_api_key_hash);

-- The number of calls of an app on one day. A node that accepts calls of an app with limits locks
-- the row, so that nodes count one after the other.
create table app_usage (
  app_id text primary key,
  -- Days since 1970, in UTC.
  day integer not null,
  calls integer not null
);

-- Secrets that sign notifications.
create table webhook_secrets (
  secret_id text primary key,
  app_id text not null,
  -- Encrypted.
  secret bytea not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3)
);
create index webhook_secrets_app on webhook_secrets (app_id);

create table bots (
  bot_id text primary key,
  -- A second identifier that requests may use for the bot.
  stream_id text,
  account_id text not null,
  icon_url text,
  -- The URL at which the bot accepts audio streams.
  stream_url text,
  -- The query parameters of that URL. Encrypted.
  stream_query bytea,
  -- When the gateway opens the stream.
  stream_connect text,
  -- How calls are recorded if their requests don't say so. Null: they aren't.
  recording jsonb,
  created_at timestamptz(3) not null
);
create unique index bots_stream_id on bots (stream_id);

-- Sounds that an account uploaded for its calls to play.
create table sounds (
  account_id text not null,
  name text not null,
  -- µ-law at 8 kHz: a byte is an eighth of a millisecond.
  mulaw bytea not null,
  -- Names the exact audio in the records of calls.
  sha256 text not null generated always as (encode(sha256(mulaw), 'hex')) stored,
  -- Changes with each upload.
  version uuid not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (account_id, name)
);
-- PostgreSQL's compression does not make µ-law speech smaller.
alter table sounds alter column mulaw set storage external;
`;
