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
  steady_since timestamptz(3),
  -- The lease ran out and another process, lost_by, said so: this one may state nothing more.
  lost_at timestamptz(3),
  lost_by text,
  calls integer not null,
  draining boolean not null,
  -- Whether the node stores its events before it publishes them.
  appends boolean not null default false
);
create function keep_from_older_nodes() returns trigger language plpgsql as $$
begin
  if old.appends and old.lost_at is null and new.lost_by is null then
    new.lost_at := null;
  end if;
  return new;
end $$;
create trigger nodes_lost before update of lost_at on nodes for each row execute function keep_from_older_nodes();
`;
