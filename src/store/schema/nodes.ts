// The processes that share this database, each with its lease.

export const nodes = `
create table nodes (
  -- NODE_ID and a random part of this start: what calls.owner_id says.
  owner_id text primary key,
  node_id text not null,
  version text not null,
  started_at timestamptz(3) not null,
  renewed_at timestamptz(3) not null,
  lease_until timestamptz(3) not null,
  -- Since when the renewals of this process have arrived without a gap. A node marks others lost only
  -- after a whole lease without one: after an outage of the database every lease has run out, and the
  -- first node to renew must not take that for the death of the others.
  steady_since timestamptz(3) not null,
  -- The lease ran out and another process said so: this one may state nothing more.
  lost_at timestamptz(3),
  calls integer not null,
  draining boolean not null
);
`;
