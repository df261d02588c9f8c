// Recordings of calls, the keys for which they are encrypted, and the POSTs about them.

export const recordings = `
-- A row for each recording that is, or was, on its way to the store. It is written when the call's
-- part is over. The audio is never here.
create table recordings (
  call_id text primary key,
  account_id text not null,
  bot_id text not null,
  -- The node and start whose spool has the recording.
  owner_id text not null,
  -- finishing: a node makes one file of the segments that a lost node left. storing, stored, failed.
  state text not null,
  started_at timestamptz(3) not null,
  -- Null while finishing.
  duration_ms integer,
  paused_ms integer,
  bytes bigint,
  sha256 text,
  -- The names of its objects in the store.
  audio_name text,
  metadata_name text,
  -- The address of the file, for people and events.
  location text,
  -- The account's key for which the recording is encrypted.
  key_name text,
  incomplete boolean not null default false,
  created_at timestamptz(3) not null,
  -- The last fault: why it waits, or why it failed.
  fault text,
  fault_detail text,
  attempts integer not null default 0,
  next_attempt_at timestamptz(3) not null,
  -- The process that stores it.
  claimed_by text,
  claimed_until timestamptz(3),
  -- When it was stored, or given up.
  settled_at timestamptz(3),
  -- The number of its event after the call's end. Null: the event is owed.
  event_sequence integer,
  -- When the event was published.
  announced_at timestamptz(3),
  -- When it is deleted. Null while finishing.
  expires_at timestamptz(3),
  deleted_at timestamptz(3),
  -- The id of an app, "retention" or "person".
  deleted_by text,
  -- What the last attempt to delete it met.
  deletion_fault text
);
create index recordings_open on recordings (created_at) where settled_at is null;
create index recordings_owed on recordings (settled_at) where settled_at is not null and announced_at is null;
create index recordings_expiry on recordings (expires_at) where settled_at is not null and deleted_at is null;
create index recordings_by_bot on recordings (account_id, bot_id, started_at);

-- Public keys, for which content keys are encrypted. The private keys never reach the gateway.
create table recording_keys (
  account_id text not null,
  name text not null,
  -- SubjectPublicKeyInfo, PEM.
  public_key text not null,
  algorithm text not null,
  created_at timestamptz(3) not null,
  primary key (account_id, name)
);

-- A POST to recording.notifyurl. It is outside the order of the call's notifications.
create table recording_notices (
  call_id text primary key,
  account_id text not null,
  bot_id text not null,
  event_id text not null,
  -- pending, delivered, failed (a dead letter).
  state text not null,
  attempts integer not null default 0,
  created_at timestamptz(3) not null,
  -- The time of the last replay, from which the 24 hours and the schedule count. Null: they count
  -- from created_at.
  owed_since timestamptz(3),
  -- The number of attempts before owed_since.
  attempts_before integer not null default 0,
  next_attempt_at timestamptz(3) not null,
  leased_until timestamptz(3),
  delivered_at timestamptz(3),
  failed_at timestamptz(3),
  failure text
);
create index recording_notices_due on recording_notices (next_attempt_at) where state = 'pending';
create index recording_notices_dead on recording_notices (account_id, bot_id, failed_at desc, event_id desc)
  where failed_at is not null;
`;
