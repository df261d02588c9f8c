// Reads and deletes the rows of stored recordings, for the API, retention and the removal of a
// person.

import type { Pool } from 'pg';
import type { Queries } from '../queries.ts';
import { calleeNumber } from '../schema/calls.ts';
import { type Sql, sql } from '../sql.ts';
import { type RecordingRow, recordingColumns } from './recording-rows.ts';

/** The bot whose recordings a client may see, or all bots of the account. */
export type RecordingScope = { readonly accountId: string; readonly botId?: string };

/** All calls to a number (E.164 digits), or one call. */
export type SpooledCalls =
  | { readonly accountId: string; readonly number: string }
  | { readonly scope: RecordingScope; readonly callId: string };

/** The names of a recording's objects in the store. */
export type RecordingObjects = Pick<
  RecordingRow,
  'callId' | 'accountId' | 'state' | 'audioName' | 'metadataName'
>;

/** Statements on recordings that run in batches. */
const batch = 100;

export class RecordingReads {
  readonly #pool: Pick<Pool, 'query'>;
  readonly #now: () => Date;

  constructor(pool: Pick<Pool, 'query'>, now: () => Date) {
    this.#pool = pool;
    this.#now = now;
  }

  async find(
    { accountId, botId }: RecordingScope,
    callId: string,
  ): Promise<RecordingRow | undefined> {
    const { rows } = await this.#pool.query<RecordingRow>(
      sql`select ${recordingColumns} from recordings r where r.call_id = ${callId} and r.account_id = ${accountId}
        and (${botId ?? null}::text is null or r.bot_id = ${botId ?? null})`,
    );
    return rows[0];
  }

  /** Returns true if the call is being recorded, so that its row will follow. */
  async isUnderWay(scope: RecordingScope, callId: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      sql`select from calls c join call_events e on e.day = c.day and e.call_id = c.call_id
        where ${areAmong({ scope, callId })} and e.type = 'recording-started' limit 1`,
    );
    return rowCount === 1;
  }

  /**
   * Marks a recording as deleted. If it isn't stored yet, the keeper then discards it.
   *
   * @param by the id of an app, "retention" or "person"
   * @returns the recording if its state has changed since it was read: it isn't marked then
   */
  async markDeleted(
    { callId, state }: Pick<RecordingRow, 'callId' | 'state'>,
    by: string,
  ): Promise<RecordingObjects | undefined> {
    const { rowCount } = await this.#pool.query(
      sql`update recordings set deleted_at = ${this.#now()}, deleted_by = ${by}, deletion_fault = null
        where call_id = ${callId} and state = ${state} and deleted_at is null`,
    );
    if (rowCount === 1) return undefined;
    const { rows } = await this.#pool.query<RecordingObjects>(
      sql`select ${recordingColumns} from recordings r where call_id = ${callId} and deleted_at is null`,
    );
    return rows[0];
  }

  /**
   * Marks recordings of settled calls as deleted that have no row, because they still lie in a
   * spool. The keeper discards them as soon as it finds them.
   *
   * @returns how many
   */
  async markSpooled(calls: SpooledCalls, by: string): Promise<number> {
    const now = this.#now();
    const { rowCount } = await this.#pool.query(
      sql`insert into recordings (call_id, account_id, bot_id, owner_id, state, started_at, created_at,
          next_attempt_at, deleted_at, deleted_by)
        select distinct on (c.call_id) c.call_id, c.account_id, c.bot_id, coalesce(c.owner_id, ''), 'finishing',
          e.time, ${now}::timestamptz, ${now}::timestamptz, ${now}::timestamptz, ${by}::text
        from calls c join call_events e
          on e.day = c.day and e.call_id = c.call_id and e.type = 'recording-started'
        where ${areAmong(calls)} and c.end_published_at is not null
        order by c.call_id, e.event_sequence
        on conflict do nothing`,
    );
    return rowCount ?? 0;
  }

  async noteDeletionFault(callId: string, fault: string): Promise<void> {
    await this.#pool.query(
      sql`update recordings set deletion_fault = ${fault} where call_id = ${callId}`,
    );
  }

  /** Returns the recording whose time was over first, after skipping some. */
  async expired(skip: number): Promise<readonly RecordingObjects[]> {
    const { rows } = await this.#pool.query<RecordingObjects>(
      sql`select ${recordingColumns} from recordings r
        where settled_at is not null and deleted_at is null and expires_at < ${this.#now()}
        order by expires_at, call_id limit 1 offset ${skip}`,
    );
    return rows;
  }

  /** Returns recordings of calls to the number (E.164 digits), also of calls that are gone. */
  async toNumber(accountId: string, number: string): Promise<readonly RecordingObjects[]> {
    const { rows } = await this.#pool.query<RecordingObjects>(
      sql`select ${recordingColumns} from recordings r
        where r.account_id = ${accountId} and r.deleted_at is null and (
          r.call_id in (select call_id from calls where account_id = ${accountId} and ${calleeNumber} = ${number})
          or r.call_id in (select call_id from call_records where account_id = ${accountId} and number = ${number}))
        limit ${batch}`,
    );
    return rows;
  }

  /**
   * Forgets recordings that were deleted before this time, also those that no keeper has found.
   * Returns their number.
   */
  async forget(deletedBefore: Date): Promise<number> {
    const { rowCount } = await this.#pool.query(
      sql`delete from recordings where call_id in (
          select call_id from recordings where deleted_at < ${deletedBefore}
            and (announced_at is not null or settled_at is null) limit ${batch})`,
    );
    await this.#pool.query(
      sql`delete from recording_notices where call_id in (
          select n.call_id from recording_notices n where created_at < ${deletedBefore} and state <> 'pending'
            and not exists (select from calls c where c.call_id = n.call_id) limit ${batch})`,
    );
    return rowCount ?? 0;
  }
}

function areAmong(calls: SpooledCalls): Sql {
  if ('number' in calls) {
    return sql`c.account_id = ${calls.accountId} and ${calleeNumber} = ${calls.number}`;
  }
  const { scope, callId } = calls;
  return sql`c.call_id = ${callId} and c.account_id = ${scope.accountId}
    and (${scope.botId ?? null}::text is null or c.bot_id = ${scope.botId ?? null})`;
}

/** Finds a call's recording, whatever became of it. */
export async function findRecording(
  queries: Queries,
  callId: string,
): Promise<RecordingRow | undefined> {
  const { rows } = await queries.query<RecordingRow>(
    sql`select ${recordingColumns} from recordings r where r.call_id = ${callId}`,
  );
  return rows[0];
}
