// Events are stored first, with the state of their call and the notifications that they owe, and published from here.

import type { Migration } from './migration.ts';

export const outbox: Migration = {
  version: 19,
  name: 'outbox',
  sql: `
-- Of the event stated last, and of the notification; null where a process stated them that knew only the stream. Events up to
-- \`published_event_sequence\` are on the stream. \`previous_owner_id\`: lost, and this call was taken over from it.
alter table calls
  add column last_event_sequence integer,
  add column last_notification_sequence integer,
  add column published_event_sequence integer,
  add column previous_owner_id text;

-- A number is given once. Two processes may have stated a call's last events, where both took it for theirs: the first stands.
delete from call_events e using call_events f
where f.call_id = e.call_id and f.event_sequence = e.event_sequence and (f.time, f.event_id) < (e.time, e.event_id);
alter table call_events drop constraint call_events_pkey;
alter table call_events add primary key (call_id, event_sequence);

-- Whether a node stores its events before it publishes them. One that does not would not find what such a node left.
alter table nodes add column appends boolean not null default false, add column lost_by text;
create function keep_from_older_nodes() returns trigger language plpgsql as $$
begin
  if old.appends and old.lost_at is null and new.lost_by is null then
    new.lost_at := null;
  end if;
  return new;
end $$;
create trigger nodes_lost before update of lost_at on nodes for each row execute function keep_from_older_nodes();
`,
};
