// Removes what is stored about the calls to one number of an account, and says what stays.
//
// Only settled calls are removed: until then a process may still write about a call. A batch of
// calls is removed in one transaction, after everything that lies elsewhere (NATS). So a removal
// that fails leaves its calls in the tables, and the next one finds them again.

import type { PoolClient } from 'pg';
import type { CallIdentity } from '../../calls/contract/identity.ts';
import { sessionIdOf } from '../../calls/life/call-events.ts';
import type { Database } from '../database.ts';
import { calleeNumber } from '../schema/calls.ts';
import { sql } from '../sql.ts';
import { inTransaction } from '../transaction.ts';

/** A settled call to the number. */
export type RemovableCall = Pick<CallIdentity, 'accountId' | 'botId' | 'callId'>;

/** The number of rows or messages, by what they are. */
export type Counts = Readonly<Record<string, number>>;

export type RemovedPerson =
  | { readonly kind: 'removed'; readonly removed: Counts; readonly kept: Counts }
  /** Calls to the number have not been settled, so nothing was removed. */
  | { readonly kind: 'in-use'; readonly calls: number };

export type PersonRemoval = {
  /** Returns the number of calls to the number that have not been settled yet. */
  countUnsettled(accountId: string, number: string): Promise<number>;
  /** Returns the oldest settled calls to the number, at most `removalBatch`. */
  findSettled(accountId: string, number: string): Promise<readonly RemovableCall[]>;
  /** Removes these calls with everything that belongs to them, or nothing. */
  remove(calls: readonly RemovableCall[]): Promise<Counts>;
  /** Removes the number from what the rules count. Its attempts stay in the records. */
  forgetNumber(accountId: string, number: string): Promise<Counts>;
  /** Counts what a removal leaves. */
  countKept(accountId: string, number: string): Promise<Counts>;
};

/** A person has had a few calls. The bound is for test numbers, which have had thousands. */
const removalBatch = 500;

/** What belongs to calls ($1), with the names that the answer uses. The calls come last. */
const statements = {
  events: 'delete from call_events where call_id = any($1::text[])',
  notifications: 'delete from notifications where call_id = any($1::text[])',
  notificationQueues: 'delete from notification_lanes where call_id = any($1::text[])',
  deliveryAttempts: 'delete from delivery_attempts where call_id = any($1::text[])',
  notificationReplays: 'delete from notification_replays where call_id = any($1::text[])',
  captures: 'delete from call_captures where call_id = any($1::text[])',
  recordingNotices: 'delete from recording_notices where call_id = any($1::text[])',
  // The keeper discards what it hasn't stored yet, and then needs the row.
  recordingRows:
    'delete from recordings where call_id = any($1::text[]) and settled_at is not null',
  legs: 'delete from call_legs where call_id = any($1::text[])',
  calls: 'delete from calls where call_id = any($1::text[])',
};

const messagesStatement = `
delete from messages where account_id = $1 and bot_id = any($2::text[])
  and (call_id = any($3::text[]) or session_id = any($4::text[]))`;

const conversationsStatement = `
delete from conversations where account_id = $1 and bot_id = any($2::text[])
  and session_id = any($3::text[])`;

export function createPersonRemoval({ pool }: Pick<Database, 'pool'>): PersonRemoval {
  const isTo = (accountId: string, number: string) =>
    sql`account_id = ${accountId} and ${calleeNumber} = ${number}`;
  return {
    async countUnsettled(accountId, number) {
      const { rows } = await pool.query<{ count: number }>(
        sql`select count(*)::integer from calls where ${isTo(accountId, number)} and end_published_at is null`,
      );
      return rows[0]?.count ?? 0;
    },
    async findSettled(accountId, number) {
      const { rows } = await pool.query<RemovableCall>(
        sql`select account_id as "accountId", bot_id as "botId", call_id as "callId" from calls
          where ${isTo(accountId, number)} and end_published_at is not null
          order by accepted_at, call_id limit ${removalBatch}`,
      );
      return rows;
    },
    remove: (calls) => inTransaction(pool, (client) => removeCalls(client, calls)),
    async forgetNumber(accountId, number) {
      const { rowCount } = await pool.query(
        'delete from called_numbers where account_id = $1 and number = $2',
        [accountId, `+${number}`],
      );
      return { calledNumbers: rowCount ?? 0 };
    },
    async countKept(accountId, number) {
      const { rows } = await pool.query<{ records: number; suppressions: number }>(
        sql`select
          (select count(*)::integer from call_records
            where account_id = ${accountId} and number = ${number}) as records,
          (select count(*)::integer from suppressions
            where account_id = ${accountId} and address = ${`+${number}`}) as suppressions`,
      );
      return { ...rows[0] };
    },
  };
}

async function removeCalls(client: PoolClient, calls: readonly RemovableCall[]): Promise<Counts> {
  const [first] = calls;
  if (first === undefined) return {};
  const callIds = calls.map(({ callId }) => callId);
  const counts: Record<string, number> = {};
  const remove = async (name: string, statement: string, values: unknown[]): Promise<void> => {
    counts[name] = (await client.query(statement, values)).rowCount ?? 0;
  };
  const sessionIds = calls.map(({ callId }) => sessionIdOf({ callId }));
  const inBots = [first.accountId, [...new Set(calls.map(({ botId }) => botId))]];
  await remove('messages', messagesStatement, [...inBots, callIds, sessionIds]);
  await remove('conversations', conversationsStatement, [...inBots, sessionIds]);
  for (const [name, statement] of Object.entries(statements)) {
    await remove(name, statement, [callIds]);
  }
  return counts;
}
