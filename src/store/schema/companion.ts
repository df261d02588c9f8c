// The companion's tables, except for messages.

export const companion = `
-- Connections to model providers.
create table connections (
  connection_id text primary key,
  account_id text not null,
  name text not null,
  provider text not null,
  model text not null,
  status text not null,
  -- The rest of the create body, with masks in place of secrets, so that a read needs no key.
  settings jsonb not null,
  -- Encrypted JSON of the secret values, at their places in the body.
  secrets bytea not null,
  created_on timestamptz(3) not null,
  modified_on timestamptz(3) not null
);
create index connections_by_account on connections (account_id, created_on desc, connection_id desc);

-- Conversation sessions of the contact center.
create table conversations (
  account_id text not null,
  bot_id text not null,
  session_id text not null,
  -- The time of publication in microseconds. An earlier version never replaces a later one.
  version bigint not null,
  document jsonb not null,
  primary key (account_id, bot_id, session_id)
);
create index conversations_by_age on conversations (version);

-- Batch test runs, as the test runner last reported them.
create table test_runs (
  account_id text not null,
  bot_id text not null,
  run_id text not null,
  suite_name text not null,
  document jsonb not null,
  -- The object that holds the result file.
  file_name text,
  is_completed boolean not null,
  -- The version of the report. A later report has a higher one.
  version bigint not null,
  updated_at timestamptz(3) not null,
  primary key (account_id, bot_id, run_id)
);
create index test_runs_by_age on test_runs (updated_at);
-- Requests name a run by the stream it was published with, before its bot is known.
create index test_runs_by_id on test_runs (account_id, run_id);

-- Definitions of data tables. Their rows are validated JSON, so that no name from a client becomes
-- SQL.
create table data_tables (
  account_id text not null,
  name text not null,
  definition jsonb not null,
  created_at timestamptz(3) not null,
  primary key (account_id, name)
);
create table data_rows (
  sys_id text primary key,
  account_id text not null,
  table_name text not null,
  row jsonb not null,
  created_on timestamptz(3) not null,
  updated_on timestamptz(3) not null,
  created_by text not null,
  updated_by text not null
);
create index data_rows_by_table on data_rows (account_id, table_name, created_on);

-- Contact-center configuration in its imported form.
create table imported_records (
  account_id text not null,
  org_id text not null,
  type text not null,
  record_id text not null,
  bot_id text not null,
  record jsonb not null,
  imported_at timestamptz(3) not null,
  imported_by text not null,
  primary key (account_id, org_id, type, record_id)
);
`;
