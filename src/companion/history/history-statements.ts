// SQL for the history. Each page is read from an index whose first columns are the filters,
// followed by the columns that determine the order.

import { all, joined, type Sql, sql } from '../../store/sql.ts';
import type { HistoryQuery } from './history-request.ts';

/** The messages that a client may see, i.e. those of the account's listed bots. */
export type HistoryScope = { readonly accountId: string; readonly botIds: readonly string[] };

export type Direction = 'older' | 'newer';

/** A position among the messages, i.e. a time (in the database's notation) and a message id. */
export type Start = {
  readonly at: string;
  readonly message_id: string;
  readonly included: boolean;
};

type Part = {
  readonly way: Direction;
  readonly start?: Start;
  readonly now: Date;
  readonly skipped?: readonly string[];
  readonly rows: number;
};

const dayMs = 86_400_000;
/**
 * Trace id retention, according to the specification. We delete older trace ids within the hour,
 * and omit them from responses until then.
 */
export const traceIdDays = 30;

export function pageStatement(scope: HistoryScope, query: HistoryQuery, part: Part): Sql {
  const { traceId, agentInfo, secureForm } = query.include;
  const youngest = sql`${part.now}::timestamptz - make_interval(days => ${traceIdDays}::integer)`;
  const columns = [
    sql`created_on::text as at, document`,
    ...(traceId ? [sql`case when created_on > ${youngest} then trace_id end as trace_id`] : []),
    ...(agentInfo ? [sql`agent_info`] : []),
    ...(secureForm ? [sql`secure_form`] : []),
  ];
  return nearest(scope, query, part, joined(columns, ', '));
}

/**
 * Selects the first sessions among `part.rows` messages, and the number of messages that were read.
 */
export function sessionsStatement(
  scope: HistoryScope,
  query: HistoryQuery,
  part: Part & { readonly sessions: number },
): Sql {
  return sql`
    select session_id, sum(count(*)) over () as seen
    from (
      select session_id, row_number() over (${inOrder(part.way)}) as place
      from (${nearest(scope, query, part, sql`session_id`)}) page
    ) placed
    group by session_id order by min(place) limit ${part.sessions}`;
}

export function countStatement(scope: HistoryScope, query: HistoryQuery): Sql {
  const bots = sql`any(${scope.botIds}::text[])`;
  const { userId = '', from, before, sessionIds, callId, tags } = query;
  const days = wholeDays(from, before);
  const isCounted = sessionIds === undefined && callId === undefined && tags === undefined;
  const among = (part: HistoryQuery) =>
    sql`(select count(*) from messages where ${all([...commonConditions(scope, bots, part), ...narrowConditions(part)])})`;
  if (!isCounted || days === undefined) return sql`select ${among(query)} as total`;
  // Pass dates as text, because `pg` would convert them to this process's time zone, where it may
  // be a different day.
  const counted = all([
    ...commonConditions(scope, bots, { ...query, userId }),
    days.first && sql`day >= ${days.first.toISOString()}::date`,
    days.end && sql`day < ${days.end.toISOString()}::date`,
  ]);
  const edges = [
    { ...query, before: days.first },
    { ...query, from: days.end },
  ].filter((edge) => edge.from?.getTime() !== edge.before?.getTime());
  const sumOfWholeDays = sql`(select coalesce(sum(total), 0) from message_counts where ${counted})`;
  return sql`
    select ${joined([sumOfWholeDays, ...edges.map(among)], ' + ')} as total`;
}

/**
 * Returns the UTC days that are completely within the window.
 *
 * @returns undefined if there are no such days
 */
function wholeDays(from?: Date, before?: Date): { first?: Date; end?: Date } | undefined {
  if (from === undefined || before === undefined) return {};
  const first = Math.ceil(from.getTime() / dayMs) * dayMs;
  const end = Math.floor(before.getTime() / dayMs) * dayMs;
  return first < end ? { first: new Date(first), end: new Date(end) } : undefined;
}

export function positionStatement({ accountId, botIds }: HistoryScope, messageId: string): Sql {
  return sql`
    select created_on::text as at, message_id from messages
    where account_id = ${accountId} and bot_id = any(${botIds}::text[])
      and message_id = ${messageId}`;
}

/** Finds the bots by skipping through the primary key, without reading all their messages. */
export function botsStatement(accountId: string): Sql {
  return sql`
    with recursive known (bot_id) as (
      (select bot_id from messages where account_id = ${accountId} order by bot_id limit 1)
      union all
      select (
        select bot_id from messages
        where account_id = ${accountId} and bot_id > known.bot_id order by bot_id limit 1)
      from known where known.bot_id is not null)
    select bot_id from known where bot_id is not null`;
}

/**
 * Selects the nearest messages. With several bots, the statement first selects each bot's nearest
 * messages, because the index is ordered by bot.
 */
function nearest(scope: HistoryScope, query: HistoryQuery, part: Part, columns: Sql): Sql {
  const nearestOfBot = (bot: Sql) => sql`
    select created_on, message_id, ${columns} from messages
    where ${all([...commonConditions(scope, bot, query), ...narrowConditions(query), ...partConditions(part)])}
    ${inOrder(part.way)} limit ${part.rows}`;
  const [only, ...others] = scope.botIds;
  if (only !== undefined && others.length === 0) return nearestOfBot(sql`${only}`);
  return sql`
    select nearest.* from unnest(${scope.botIds}::text[]) as visible (id)
    cross join lateral (${nearestOfBot(sql`visible.id`)}) nearest
    ${inOrder(part.way)} limit ${part.rows}`;
}

function inOrder(way: Direction): Sql {
  return way === 'older'
    ? sql`order by created_on desc, message_id desc`
    : sql`order by created_on, message_id`;
}

type Condition = Sql | undefined;

/** Returns the conditions that apply both to messages and to message counts. */
function commonConditions(scope: HistoryScope, bot: Sql, query: HistoryQuery): Condition[] {
  const { userId, channel, withTasks } = query;
  return [
    sql`account_id = ${scope.accountId}`,
    sql`bot_id = ${bot}`,
    userId === undefined ? undefined : sql`user_id = ${userId}`,
    channel === undefined ? undefined : sql`channel = ${channel}`,
    withTasks ? undefined : sql`not is_task`,
  ];
}

function narrowConditions({ sessionIds, callId, from, before, tags }: HistoryQuery): Condition[] {
  return [
    sessionIds && sql`session_id = any(${sessionIds}::text[])`,
    callId === undefined ? undefined : sql`call_id = ${callId}`,
    from && sql`created_on >= ${from}::timestamptz`,
    before && sql`created_on < ${before}::timestamptz`,
    tags && sql`tags @> ${JSON.stringify(tags)}::jsonb`,
  ];
}

function partConditions({ way, start, skipped = [] }: Part): Condition[] {
  return [
    start && isBeyond(way, start),
    skipped.length === 0 ? undefined : sql`session_id <> all(${skipped}::text[])`,
  ];
}

function isBeyond(way: Direction, { at, message_id, included }: Start): Sql {
  const here = sql`(created_on, message_id)`;
  const there = sql`(${at}::timestamptz, ${message_id})`;
  if (way === 'older') return included ? sql`${here} <= ${there}` : sql`${here} < ${there}`;
  return included ? sql`${here} >= ${there}` : sql`${here} > ${there}`;
}
