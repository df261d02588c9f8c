// Messages between bots and users, and their counts.

export const messages = `
create table messages (
  account_id text not null,
  bot_id text not null,
  message_id text not null,
  -- The time of publication in microseconds. An earlier version never replaces a later one.
  version bigint not null,
  created_on timestamptz(3) not null,
  user_id text not null,
  session_id text not null,
  channel text not null,
  call_id text,
  -- True for a message of an alert or action task, which version 2 of the history omits.
  is_task boolean not null,
  tags jsonb,
  -- The JSON text that responses carry, so that ten thousand messages need no parsing. Values that
  -- filters need have columns of their own.
  document text not null,
  -- More JSON: parts that a response contains only on request.
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
-- For retention. Not on created_on itself, which orders pages: the planner must not search a page
-- among the messages of all accounts.
create index messages_by_age on messages ((created_on at time zone 'UTC'));
-- Trace ids are kept for 30 days. The index finds the messages that still have one.
create index messages_with_trace_id on messages ((created_on at time zone 'UTC'))
  where trace_id is not null;

-- How many messages a user had on a day of UTC, and the bot in total (user ''). Counting millions
-- of messages takes longer than reading a page.
create table message_counts (
  account_id text not null,
  bot_id text not null,
  user_id text not null,
  channel text not null,
  is_task boolean not null,
  day date not null,
  total bigint not null,
  primary key (account_id, bot_id, user_id, channel, is_task, day)
);

create function count_message(of_account text, of_bot text, of_user text, of_channel text, of_task boolean,
  on_day date, change bigint) returns void language plpgsql as $$
begin
  if change > 0 then
    insert into message_counts as known values (of_account, of_bot, of_user, of_channel, of_task, on_day, change)
    on conflict (account_id, bot_id, user_id, channel, is_task, day) do update set total = known.total + change;
  else
    update message_counts set total = total + change
    where (account_id, bot_id, user_id, channel, is_task, day)
      = (of_account, of_bot, of_user, of_channel, of_task, on_day);
    delete from message_counts
    where (account_id, bot_id, user_id, channel, is_task, day)
      = (of_account, of_bot, of_user, of_channel, of_task, on_day) and total = 0;
  end if;
end $$;

-- Counts the messages of each user and of the bot (user ''), in key order, so that two statements
-- cannot deadlock.
create function count_messages() returns trigger language plpgsql as $$
begin
  perform count_message(account_id, bot_id, of_user, channel, is_task, day,
    case tg_op when 'INSERT' then total else -total end)
  from (
    select account_id, bot_id, coalesce(user_id, '') as of_user, channel, is_task, day, count(*) as total
    from (select *, (created_on at time zone 'UTC')::date as day from changed) dated
    group by account_id, bot_id, channel, is_task, day, grouping sets ((user_id), ())
    order by 1, 2, 3, 4, 5, 6) counted;
  return null;
end $$;

create function count_moved_message() returns trigger language plpgsql as $$
begin
  perform count_message(old.account_id, old.bot_id, of_user, old.channel, old.is_task,
    (old.created_on at time zone 'UTC')::date, -1) from unnest(array[old.user_id, '']) of_user;
  perform count_message(new.account_id, new.bot_id, of_user, new.channel, new.is_task,
    (new.created_on at time zone 'UTC')::date, 1) from unnest(array[new.user_id, '']) of_user;
  return null;
end $$;

create trigger count_added after insert on messages
  referencing new table as changed for each statement execute function count_messages();
create trigger count_removed after delete on messages
  referencing old table as changed for each statement execute function count_messages();
-- A later version rarely moves a message. Versions that change only a message's status are
-- frequent, and change no count.
create trigger count_moved after update on messages for each row
  when ((old.user_id, old.channel, old.is_task, old.created_on)
    is distinct from (new.user_id, new.channel, new.is_task, new.created_on))
  execute function count_moved_message();
`;
