// Lists dead letters, i.e. notifications that we have given up on, and replays them on request. A
// replayed notification has the same event id and body, but its 24 hours and its retry schedule
// start again.

import { callIdOfEvent } from '../calls/contract/call-event.ts';
import { notificationOf } from '../calls/contract/event-table.ts';
import {
  type EventColumns,
  type IdentityColumns,
  identityOf,
  toCallEvent,
} from '../store/calls/call-rows.ts';
import type { Database } from '../store/database.ts';
import type { Failure } from './delivery-rules.ts';
import type { SqlClient } from './sql-client.ts';

/** A request may see the dead letters of one of the account's bots. */
export type DeadLetterScope = { readonly accountId: string; readonly botId: string };

/** An app may see the dead letters of the listed bots, or of all the account's bots. */
export type AppDeadLetterScope = {
  readonly accountId: string;
  readonly botIds: readonly string[] | 'all';
};

export type DeadLetterSelection = {
  readonly callId?: string;
  readonly failedFrom?: Date;
  /** Exclusive. */
  readonly failedTo?: Date;
};

export type DeadLetterFilter = DeadLetterSelection & {
  readonly failure?: Failure;
  /** Opaque cursor from the previous page. */
  readonly cursor?: string;
  readonly limit: number;
};

export type DeadLetter = {
  readonly eventId: string;
  readonly callId: string;
  readonly botId: string;
  /** Undefined for a POST about a recording, which is outside the call's order. */
  readonly sequence?: number;
  readonly state: 'failed';
  readonly failure: Failure;
  readonly createdAt: string;
  readonly failedAt: string;
  readonly attempts: number;
  /**
   * HTTP status of the final attempt. Undefined if no response arrived, or if the attempt has since
   * been removed from the log.
   */
  readonly lastStatus?: number;
  readonly lastError?: string;
  readonly body: unknown;
};

export type ReplayedNotification = {
  readonly eventId: string;
  readonly callId: string;
  readonly state: 'pending' | 'delivered' | 'failed';
  /** False if the notification wasn't a dead letter, in which case we didn't change anything. */
  readonly replayed: boolean;
};

export type DeadLetters = {
  /** Returns a page of dead letters, newest first. */
  list(
    scope: DeadLetterScope | AppDeadLetterScope,
    filter: DeadLetterFilter,
  ): Promise<
    { readonly deadLetters: readonly DeadLetter[]; readonly nextCursor?: string } | 'bad-cursor'
  >;
  /**
   * Replays one notification.
   *
   * @param by the app's id, for the log
   * @returns undefined if the scope has no notification with this id
   */
  replayOne(
    scope: DeadLetterScope,
    by: string,
    eventId: string,
  ): Promise<ReplayedNotification | undefined>;
  /**
   * Replays selected dead letters, oldest first, up to a limit. `more` is true if the limit was
   * reached, in which case repeating the call may find more.
   */
  replay(
    scope: DeadLetterScope,
    by: string,
    selection: DeadLetterSelection,
  ): Promise<{ readonly count: number; readonly more: boolean }>;
};

/**
 * Limits the replays in one statement. A full batch takes about 100 ms on a slow disk.
 */
const replayBatch = 500;

// Parameters: account, bot, call, from, to. `failed_at is not null` lets PostgreSQL use the partial
// index. The condition on `calls` excludes deleted calls, because a deleted call's notifications
// remain until the day's partition is dropped (`src/store/retention.ts`).
const selected = `(select true from calls c where c.call_id = n.call_id) and n.account_id = $1 and n.bot_id = $2 and n.failed_at is not null and n.state = 'failed'
  and ($3::text is null or n.call_id = $3) and ($4::timestamptz is null or n.failed_at >= $4)
  and ($5::timestamptz is null or n.failed_at < $5)`;

const listStatement = { name: 'dead-letters-list', text: listFrom(pageOf(selected)) } as const;

// Selects each bot's newest dead letters from an index. $2 is an array of bots. If $2 is null, a
// recursive query uses the same index to step through all the account's bots.
const listOfAppStatement = {
  name: 'dead-letters-list-of-app',
  text: listFrom(`
with recursive known (bot_id) as (
  (select bot_id from notifications
   where account_id = $1 and failed_at is not null and $2::text[] is null order by bot_id limit 1)
  union all
  select (select bot_id from notifications
    where account_id = $1 and failed_at is not null and bot_id > known.bot_id order by bot_id limit 1)
  from known where known.bot_id is not null
), visible (bot_id) as (
  select bot_id from known where bot_id is not null union select unnest($2::text[])
  union select bot_id from recording_notices where account_id = $1 and failed_at is not null and $2::text[] is null
)
select newest.* from visible cross join lateral (${pageOf(selected.replace('$2', 'visible.bot_id'))}) newest
order by newest.failed_at desc, newest.event_id desc limit $9`),
} as const;

/**
 * A page of notifications, and of POSTs about recordings, which have no sequence. Each part uses
 * its own index.
 */
function pageOf(condition: string): string {
  const filtered = `${condition} and ($6::text is null or n.failure = $6)
  and ($7::timestamptz is null or (n.failed_at, n.event_id) < ($7, $8::text))
  order by n.failed_at desc, n.event_id desc limit $9`;
  const columns =
    'n.event_id, n.call_id, n.bot_id, n.failure, n.created_at, n.failed_at, n.attempts';
  return `
select * from (
  (select n.day, n.sequence, n.event_sequence, ${columns} from notifications n where ${filtered})
  union all
  (select (select day from calls where call_id = n.call_id), null::integer,
     substring(n.event_id from '[0-9]+$')::integer, ${columns} from recording_notices n where ${filtered})
) n
order by n.failed_at desc, n.event_id desc limit $9`;
}

/** Joins the final attempt to each row of `page`, which is a query on notifications. */
function listFrom(page: string): string {
  return `
select n.event_id, n.call_id, n.bot_id, n.sequence, n.failure, n.created_at, n.failed_at, n.attempts,
  c.sid, c.conversation_id, c.account_id, c.app_id, e.event_sequence, e.type, e.time, e.data, a.response_status, a.error
from (${page}) n
join calls c on c.call_id = n.call_id
join call_events e on e.day = n.day and e.call_id = n.call_id and e.event_sequence = n.event_sequence
left join lateral (
  select response_status, error from delivery_attempts a
  where a.day = n.day and a.call_id = n.call_id and a.event_id = n.event_id order by a.attempt desc limit 1
) a on true
order by n.failed_at desc, n.event_id desc`;
}

// If another process has leased the queue, the statement moves the lease by a millisecond, which
// forces that process to read the queue again before releasing it.
const replayStatement = (name: string, condition: string) =>
  ({
    name,
    text: `
with chosen as (
  select n.day, n.call_id, n.sequence from notifications n where ${condition}
  order by n.failed_at, n.call_id, n.sequence limit ${replayBatch}
  for update
), renewed as (
  update notifications n set state = 'pending', failed_at = null, failure = null, refused_at = null,
    owed_since = $6, attempts_before = n.attempts
  from chosen where n.day = chosen.day and n.call_id = chosen.call_id and n.sequence = chosen.sequence
  returning n.event_id, n.call_id, n.day
), logged as (
  insert into notification_replays (event_id, call_id, replayed_at, replayed_by)
  select event_id, call_id, $6, $7 from renewed
), lanes as (
  insert into notification_lanes as lane (call_id, day, account_id, origin, next_attempt_at)
  select distinct r.call_id, r.day, $1, coalesce(substring(c.notify_url from '^[a-z]+://[^/?#]*'), ''), $6::timestamptz
  from renewed r left join calls c using (call_id) order by r.call_id
  on conflict (call_id) do update set next_attempt_at = least(lane.next_attempt_at, excluded.next_attempt_at),
    leased_until = lane.leased_until + interval '1 millisecond'
)
select event_id from renewed`,
  }) as const;

const replayNotices = (name: string, condition: string) => ({
  name,
  text: `
with chosen as (
  select n.call_id from recording_notices n where ${condition}
  order by n.failed_at, n.call_id limit ${replayBatch} for update
), renewed as (
  update recording_notices n set state = 'pending', failed_at = null, failure = null, owed_since = $6,
    attempts_before = n.attempts, next_attempt_at = $6
  from chosen where n.call_id = chosen.call_id
  returning n.event_id, n.call_id
)
insert into notification_replays (event_id, call_id, replayed_at, replayed_by)
select event_id, call_id, $6, $7 from renewed returning event_id`,
});

const replayAllNotices = replayNotices('dead-notices-replay', selected);
const replayOneNotice = replayNotices('dead-notices-replay-one', `${selected} and n.event_id = $8`);

const replayAllStatement = replayStatement('dead-letters-replay', selected);
const replayOneStatement = replayStatement(
  'dead-letters-replay-one',
  `${selected} and n.event_id = $8`,
);

const findStatement = {
  name: 'dead-letters-find',
  text: `
select n.event_id, n.call_id, n.state from notifications n join calls c using (call_id)
where n.call_id = $4 and n.event_id = $3 and c.account_id = $1 and c.bot_id = $2
union all
select n.event_id, n.call_id, n.state from recording_notices n join calls c using (call_id)
where n.call_id = $4 and n.event_id = $3 and c.account_id = $1 and c.bot_id = $2`,
} as const;

/** @param onReplayed called once the replayed notifications are pending again */
export function createDeadLetters(
  { pool: sql, reads }: Pick<Database, 'pool' | 'reads'>,
  clock: { now(): Date },
  onReplayed: () => void,
): DeadLetters {
  const values = (
    { accountId, ...bots }: DeadLetterScope | AppDeadLetterScope,
    selection: DeadLetterSelection,
  ) => [
    accountId,
    'botId' in bots ? bots.botId : bots.botIds === 'all' ? null : bots.botIds,
    selection.callId ?? null,
    selection.failedFrom ?? null,
    selection.failedTo ?? null,
  ];
  return {
    list: (scope, filter) => {
      const statement = 'botId' in scope ? listStatement : listOfAppStatement;
      return list(reads(scope.accountId), statement, values(scope, filter), filter);
    },
    async replayOne(scope, by, eventId) {
      const callId = callIdOfEvent(eventId);
      if (callId === undefined) return undefined;
      const chosen = [...values(scope, { callId }), clock.now(), by, eventId];
      const notification = await sql.query({ ...replayOneStatement, values: chosen });
      const notice =
        notification.rowCount === 1
          ? notification
          : await sql.query({ ...replayOneNotice, values: chosen });
      const isReplayed = notice.rowCount === 1;
      if (isReplayed) onReplayed();
      const found = await sql.query<FoundRow>({
        ...findStatement,
        values: [scope.accountId, scope.botId, eventId, callId],
      });
      const row = found.rows[0];
      if (row === undefined) return undefined;
      const { event_id, call_id, state } = row;
      return { eventId: event_id, callId: call_id, state, replayed: isReplayed };
    },
    async replay(scope, by, selection) {
      const chosen = [...values(scope, selection), clock.now(), by];
      const { rows } = await sql.query({ ...replayAllStatement, values: chosen });
      const notices = await sql.query({ ...replayAllNotices, values: chosen });
      const count = rows.length + notices.rows.length;
      if (count > 0) onReplayed();
      return { count, more: Math.max(rows.length, notices.rows.length) === replayBatch };
    },
  };
}

type FoundRow = {
  readonly event_id: string;
  readonly call_id: string;
  readonly state: ReplayedNotification['state'];
};

type ListedRow = EventColumns &
  IdentityColumns & {
    readonly event_id: string;
    readonly sequence: number | null;
    readonly failure: Failure;
    readonly created_at: Date;
    readonly failed_at: Date;
    readonly attempts: number;
    readonly response_status: number | null;
    readonly error: string | null;
  };

async function list(
  sql: SqlClient,
  statement: { readonly name: string; readonly text: string },
  values: readonly unknown[],
  { failure, cursor, limit }: DeadLetterFilter,
) {
  const position = cursor === undefined ? undefined : readCursor(cursor);
  if (cursor !== undefined && position === undefined) return 'bad-cursor';
  // One extra row shows whether there is another page.
  const { rows } = await sql.query<ListedRow>({
    ...statement,
    values: [
      ...values,
      failure ?? null,
      position?.failedAt ?? null,
      position?.eventId ?? null,
      limit + 1,
    ],
  });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    deadLetters: page.map(toDeadLetter),
    ...(rows.length > page.length && last !== undefined ? { nextCursor: writeCursor(last) } : {}),
  };
}

function toDeadLetter(row: ListedRow): DeadLetter {
  const event = toCallEvent(identityOf(row), row);
  return {
    eventId: row.event_id,
    callId: row.call_id,
    botId: row.bot_id,
    ...(row.sequence === null ? {} : { sequence: row.sequence }),
    state: 'failed',
    failure: row.failure,
    createdAt: row.created_at.toISOString(),
    failedAt: row.failed_at.toISOString(),
    attempts: row.attempts,
    ...(row.response_status === null ? {} : { lastStatus: row.response_status }),
    ...(row.error === null ? {} : { lastError: row.error }),
    body: row.sequence === null ? event : notificationOf(event),
  };
}

function writeCursor({ failed_at: failedAt, event_id: eventId }: ListedRow): string {
  return Buffer.from(`${failedAt.getTime()}.${eventId}`).toString('base64url');
}

function readCursor(text: string) {
  const [, failedAt, eventId] =
    /^(\d{1,14})\.(evt-[0-9A-Za-z-]{1,80})$/.exec(
      Buffer.from(text, 'base64url').toString('latin1'),
    ) ?? [];
  if (failedAt === undefined || eventId === undefined) return undefined;
  return { failedAt: new Date(Number(failedAt)), eventId };
}
