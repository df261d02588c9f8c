// Reads all calls' events as a log, ordered by transaction id. A read stops before the oldest
// running transaction, so anything that is committed later has a higher id and the next read can't
// miss an event.
//
// The drawback is that an open transaction holds up the log. The gateway's own transactions are
// single statements, but if another program on the same server is running a long transaction, all
// events after that transaction are delayed.

import type { CallEvent } from '../calls/contract/call-event.ts';
import type { Database } from '../store/database.ts';
import type { Queries } from '../store/queries.ts';
import { type Sql, sql } from '../store/sql.ts';
import { beforeTransaction, type Position } from './cursor.ts';

/**
 * The events that a follower may see, either from all these bots or only from one call (`callId`).
 */
export type EventScope = {
  readonly accountId: string;
  readonly botIds: readonly string[] | 'all';
  readonly callId?: string;
};

export type LoggedEvent = { readonly position: Position; readonly event: CallEvent };

export type LogPage = {
  readonly events: readonly LoggedEvent[];
  /** Where the next read starts. */
  readonly end: Position;
  /** True if more events may be readable now. */
  readonly isFull: boolean;
  /** True if some events won't be readable until an older transaction ends. */
  readonly isHeldUp: boolean;
};

/** The number of rows in a page, before filtering by scope. These rows take 100 KB to 1 MB. */
const pageRows = 500;

type Columns = {
  readonly bound: string;
  readonly held_up: boolean;
  readonly transaction_id: string | null;
  readonly call_id: string;
  readonly event_sequence: number;
  /** Null if the event is outside the scope. */
  readonly event: Omit<CallEvent, 'time'> | null;
  readonly time: Date;
};

export type EventLog = {
  /** Returns the log's current end. Events that can't be read yet will follow after this end. */
  end(scope: EventScope): Promise<Position>;
  /** Reads a page. Without a scope, the page contains events from all accounts. */
  read(after: Position, scope?: EventScope): Promise<LogPage>;
  /**
   * Returns true if the position can be from this database. If the database has been replaced,
   * transaction ids have started again from low numbers.
   */
  knows(position: Position, scope: EventScope): Promise<boolean>;
};

export function createEventLog({ pool, reads }: Pick<Database, 'pool' | 'reads'>): EventLog {
  return {
    end: async ({ accountId }) => beforeTransaction((await boundOf(reads(accountId))).bound),
    read: (after, scope) =>
      readPage(scope === undefined ? pool : reads(scope.accountId), after, scope),
    knows: async ({ transactionId }, { accountId }) => {
      const { next } = await boundOf(reads(accountId));
      return BigInt(transactionId) <= BigInt(next);
    },
  };
}

async function boundOf(
  queries: Queries,
): Promise<{ readonly bound: string; readonly next: string }> {
  const { rows } = await queries.query<{ bound: string; next: string }>(
    `select pg_snapshot_xmin(pg_current_snapshot())::text as bound, pg_snapshot_xmax(pg_current_snapshot())::text as next`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('a statement that returns one row returned no row');
  return row;
}

async function readPage(
  queries: Queries,
  { transactionId, callId, eventSequence }: Position,
  scope: EventScope | undefined,
): Promise<LogPage> {
  const wanted = scope === undefined ? sql`true` : inScope(scope);
  // With a call id, PostgreSQL uses the primary key, otherwise the index in log order.
  const within =
    scope?.callId === undefined
      ? sql`true`
      : sql`call_id = ${scope.callId} and day = (select day from calls where call_id = ${scope.callId})`;
  const { rows } = await queries.query<Columns>(sql`
    with place as materialized (
      select pg_snapshot_xmin(pg_current_snapshot()) as bound
    ), page as materialized (
      select transaction_id, call_id, event_sequence, event_id, type, time, data from call_events
      where (transaction_id, call_id collate "C", event_sequence) > (${transactionId}::xid8, ${callId}, ${eventSequence})
        and transaction_id < pg_snapshot_xmin(pg_current_snapshot()) and ${within}
      order by transaction_id, call_id collate "C", event_sequence limit ${pageRows}
    )
    select place.bound::text as bound,
      exists (select from call_events where transaction_id >= place.bound and ${within}) as held_up,
      page.transaction_id::text as transaction_id, page.call_id, page.event_sequence, page.time,
      case when ${wanted} then json_build_object('id', page.event_id, 'type', page.type, 'time', '',
        'eventSequence', page.event_sequence, 'callId', c.call_id, 'sid', c.sid, 'conversationId', c.conversation_id,
        'botId', c.bot_id, 'accountId', c.account_id, 'appId', c.app_id, 'data', page.data) end as event
    from place left join page on true left join calls c on c.call_id = page.call_id
    order by page.transaction_id, page.call_id collate "C", page.event_sequence`);
  return pageOf(rows);
}

function inScope({ accountId, botIds }: EventScope): Sql {
  return botIds === 'all'
    ? sql`c.account_id = ${accountId}`
    : sql`c.account_id = ${accountId} and c.bot_id = any(${botIds}::text[])`;
}

function pageOf(rows: readonly Columns[]): LogPage {
  const [first] = rows;
  if (first === undefined) throw new Error('the event log returned no row');
  const isFull = rows.length === pageRows;
  const last = isFull ? rows.at(-1) : undefined;
  return {
    events: rows.flatMap((row) =>
      row.event === null || row.event.callId === null
        ? []
        : [
            {
              position: positionOf(row),
              event: { ...row.event, time: row.time.toISOString() } as CallEvent,
            },
          ],
    ),
    end: last === undefined ? beforeTransaction(first.bound) : positionOf(last),
    isFull,
    isHeldUp: first.held_up,
  };
}

function positionOf({ transaction_id, call_id, event_sequence }: Columns): Position {
  return {
    transactionId: transaction_id ?? '0',
    callId: call_id,
    eventSequence: event_sequence,
  };
}
