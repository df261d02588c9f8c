// What bots and users said to each other.

import type { Migration } from './migration.ts';

export const messages: Migration = {
  version: 4,
  name: 'messages',
  sql: `
create table messages (
  account_id text not null,
  bot_id text not null,
  message_id text not null,
  version bigint not null,
  created_on timestamptz(3) not null,
  user_id text not null,
  session_id text not null,
  channel text not null,
  call_id text,
  is_task boolean not null,
  tags jsonb,
  document text not null,
  trace_id text,
  agent_info text,
  secure_form text,
  primary key (account_id, bot_id, message_id)
);
create index messages_of_channel on messages (account_id, bot_id, channel, created_on, message_id, is_task);
create index messages_of_user on messages (account_id, bot_id, user_id, channel, created_on, message_id, is_task);
create index messages_of_session on messages (account_id, bot_id, session_id, created_on, message_id, is_task);
create index messages_of_call on messages (account_id, bot_id, call_id, created_on, message_id, is_task)
  where call_id is not null;
create index messages_by_tags on messages using gin (tags jsonb_path_ops) where tags is not null;
create index messages_by_age on messages (created_on);

create table message_counts (
  account_id text not null,
  bot_id text not null,
  user_id text not null,
  channel text not null,
  is_task boolean not null,
  total bigint not null,
  primary key (account_id, bot_id, user_id, channel, is_task)
);

-- Rows are locked in the order of their keys, so that no two statements wait for each other.
create function count_added_messages() returns trigger language plpgsql as $$
begin
  insert into message_counts as known (account_id, bot_id, user_id, channel, is_task, total)
  select account_id, bot_id, user_id, channel, is_task, count(*) from added
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
  on conflict (account_id, bot_id, user_id, channel, is_task)
    do update set total = known.total + excluded.total;
  return null;
end $$;

create function count_removed_messages() returns trigger language plpgsql as $$
begin
  perform from message_counts
  where (account_id, bot_id, user_id, channel, is_task) in (
    select account_id, bot_id, user_id, channel, is_task from removed)
  order by account_id, bot_id, user_id, channel, is_task for update;
  update message_counts known set total = known.total - gone.total
  from (
    select account_id, bot_id, user_id, channel, is_task, count(*) as total from removed
    group by 1, 2, 3, 4, 5) gone
  where (known.account_id, known.bot_id, known.user_id, known.channel, known.is_task)
    = (gone.account_id, gone.bot_id, gone.user_id, gone.channel, gone.is_task);
  delete from message_counts
  where total = 0 and (account_id, bot_id, user_id, channel, is_task) in (
    select account_id, bot_id, user_id, channel, is_task from removed);
  return null;
end $$;

-- A later version that moves a message is rare; one that changes its status is not, and counts nothing.
create function count_moved_message() returns trigger language plpgsql as $$
begin
  update message_counts set total = total - 1
  where (account_id, bot_id, user_id, channel, is_task)
    = (old.account_id, old.bot_id, old.user_id, old.channel, old.is_task);
  insert into message_counts as known
  values (new.account_id, new.bot_id, new.user_id, new.channel, new.is_task, 1)
  on conflict (account_id, bot_id, user_id, channel, is_task) do update set total = known.total + 1;
  return null;
end $$;

create trigger count_added after insert on messages
  referencing new table as added for each statement execute function count_added_messages();
create trigger count_removed after delete on messages
  referencing old table as removed for each statement execute function count_removed_messages();
create trigger count_moved after update on messages for each row
  when ((old.user_id, old.channel, old.is_task) is distinct from (new.user_id, new.channel, new.is_task))
  execute function count_moved_message();
`,
};
