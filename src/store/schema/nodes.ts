// The processes that share this database, each with its lease.

export const nodes = `
create table nodes (
  -- NODE_ID and a part that is random for each start. calls.owner_id holds this id.
  owner_id text primary key,
  node_id text not null,
  version text not null,
  started_at timestamptz(3) not null,
  renewed_at timestamptz(3) not null,
  lease_until timestamptz(3) not null,
  -- Since when the renewals of this process have arrived without a gap. A node marks others lost
  -- only after NODE_LEASE_MS without a gap: after an outage of the database every lease has
  -- expired, and the first node to renew must not conclude that the others are dead.
  steady_since timestamptz(3) not null,
  -- When another process marked this one lost after its lease expired. A lost process can store
  -- nothing more.
  lost_at timestamptz(3),
  calls integer not null,
  draining boolean not null,
  -- The ids of the keys with which the process opens stored secrets.
  secret_keys text[] not null default '{}',
  -- Where other nodes ask this process whether it's alive when its lease has expired.
  urls text[] not null default '{}',
  -- Random for each start. Signs these questions and their answers, so that only processes with
  -- access to this table can ask, and no other process can answer.
  question_key text not null
);
`;
