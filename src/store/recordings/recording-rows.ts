// The rows of recordings, from the end of the call to the store. Only one process stores a
// recording: the one that has claimed its row. A claim of a process that died runs out.

import type { Pool } from 'pg';
import type { Queries } from '../queries.ts';
import { sql } from '../sql.ts';
import { inTransaction } from '../transaction.ts';
import { appendLateEvents } from './late-events.ts';

export type RecordingRow = {
  readonly callId: string;
  readonly accountId: string;
  readonly botId: string;
  readonly ownerId: string;
  readonly state: 'finishing' | 'storing' | 'stored' | 'failed';
  readonly startedAt: Date;
  readonly durationMs: number | null;
  readonly pausedMs: number | null;
  /** A bigint, which `pg` returns as text. */
  readonly bytes: string | null;
  readonly sha256: string | null;
  readonly audioName: string | null;
  readonly metadataName: string | null;
  readonly location: string | null;
  readonly keyName: string | null;
  readonly isIncomplete: boolean;
  readonly createdAt: Date;
  readonly fault: string | null;
  readonly attempts: number;
  readonly nextAttemptAt: Date;
  readonly settledAt: Date | null;
  readonly expiresAt: Date | null;
  readonly deletedAt: Date | null;
  readonly deletedBy: string | null;
};

export const recordingColumns = sql`
  r.call_id as "callId", r.account_id as "accountId", r.bot_id as "botId", r.owner_id as "ownerId", r.state,
  r.started_at as "startedAt", r.duration_ms as "durationMs", r.paused_ms as "pausedMs", r.bytes, r.sha256,
  r.audio_name as "audioName", r.metadata_name as "metadataName", r.location, r.key_name as "keyName",
  r.incomplete as "isIncomplete", r.created_at as "createdAt", r.fault, r.attempts,
  r.next_attempt_at as "nextAttemptAt", r.settled_at as "settledAt", r.expires_at as "expiresAt",
  r.deleted_at as "deletedAt", r.deleted_by as "deletedBy"`;

/** A recording that may be claimed, as its spool describes it. */
export type ClaimableRecording = {
  readonly callId: string;
  readonly accountId: string;
  readonly botId: string;
  readonly ownerId: string;
  readonly startedAt: Date;
  readonly keyName: string | undefined;
};

/** A recording that is one file. */
export type FinishedRecording = {
  readonly durationMs: number;
  readonly pausedMs: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly audioName: string;
  readonly metadataName: string;
  readonly location: string;
  readonly isIncomplete: boolean;
};

export type RecordingOutcome =
  | { readonly state: 'stored' }
  | { readonly state: 'failed'; readonly reason: string; readonly detail: string };

export type RecordingFigures = {
  /** Recordings that are not stored yet, and since when the oldest of them waits. */
  readonly waiting: number;
  readonly oldestAt: Date | null;
};

/**
 * A claim outlives a process by this much at most. The holder renews it every minute, so a slow
 * upload keeps it.
 */
const claimFor = `interval '5 minutes'`;
const msPerDay = 86_400_000;

export class RecordingRows {
  readonly #pool: Pool;
  readonly #ownerId: string;
  readonly #now: () => Date;

  constructor(pool: Pool, ownerId: string, now: () => Date) {
    this.#pool = pool;
    this.#ownerId = ownerId;
    this.#now = now;
  }

  /**
   * Claims a recording, and writes its row if it's missing. A claim of a lost process is void.
   *
   * @returns the row as it is now, and whether this process has the claim. A row that is stored or
   *   has failed is never claimed
   */
  async claim(
    recording: ClaimableRecording,
  ): Promise<{ readonly row: RecordingRow; readonly isClaimed: boolean }> {
    const { callId, accountId, botId, ownerId, startedAt, keyName } = recording;
    const claimed = await this.#pool.query<RecordingRow>(
      `insert into recordings as r (call_id, account_id, bot_id, owner_id, state, started_at, key_name,
         created_at, next_attempt_at, claimed_by, claimed_until)
       values ($1, $2, $3, $4, 'finishing', $5, $6, $7, $7, $8, now() + ${claimFor})
       on conflict (call_id) do update
         set claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
         where r.settled_at is null and (r.claimed_until < now() or r.claimed_by = excluded.claimed_by
           or not exists (select from nodes n where n.owner_id = r.claimed_by and n.lost_at is null))
       returning ${recordingColumns.text}`,
      [callId, accountId, botId, ownerId, startedAt, keyName ?? null, this.#now(), this.#ownerId],
    );
    const [row] = claimed.rows;
    if (row !== undefined) return { row, isClaimed: true };
    const other = await this.find(callId);
    if (other === undefined)
      throw new Error('the row of a recording was deleted while it was claimed');
    return { row: other, isClaimed: false };
  }

  /** @returns false if another process has the claim */
  async renewClaim(callId: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      `update recordings set claimed_until = now() + ${claimFor}
       where call_id = $1 and claimed_by = $2 and settled_at is null`,
      [callId, this.#ownerId],
    );
    return rowCount === 1;
  }

  /**
   * Notes that the recording is one file, which has to be stored. The request says how long it is
   * kept.
   *
   * @returns false if another process has the claim
   */
  async noteFinished(
    callId: string,
    recording: FinishedRecording,
    defaultRetentionDays: number,
  ): Promise<boolean> {
    const { durationMs, pausedMs, bytes, sha256, audioName, metadataName } = recording;
    const { rowCount } = await this.#pool.query(
      sql`update recordings r set state = 'storing', duration_ms = ${durationMs}, paused_ms = ${pausedMs},
          bytes = ${bytes}, sha256 = ${sha256}, audio_name = ${audioName}, metadata_name = ${metadataName},
          location = ${recording.location}, incomplete = ${recording.isIncomplete}, fault = null, fault_detail = null,
          expires_at = r.started_at + ${durationMs}::integer * interval '1 millisecond' + interval '1 millisecond' * ${msPerDay} *
            coalesce((select (c.request #>> '{recording,retentionDays}')::double precision
              from calls c where c.call_id = r.call_id), ${defaultRetentionDays}::double precision)
        where call_id = ${callId} and claimed_by = ${this.#ownerId} and settled_at is null`,
    );
    return rowCount === 1;
  }

  /** Notes a failed attempt, and when the next one is due. */
  async noteFault(
    callId: string,
    fault: { readonly reason: string; readonly detail: string },
    nextAttemptAt: Date,
  ): Promise<void> {
    await this.#pool.query(
      sql`update recordings set attempts = attempts + 1, fault = ${fault.reason},
          fault_detail = ${fault.detail}, next_attempt_at = ${nextAttemptAt}
        where call_id = ${callId} and claimed_by = ${this.#ownerId} and settled_at is null`,
    );
  }

  /**
   * Notes that the recording is stored, or given up, and appends its event to the call's in the
   * same transaction. If the call isn't settled yet, `appendOwed` appends the event later.
   *
   * @returns false if another process has done so, or has the claim
   */
  async settle(callId: string, outcome: RecordingOutcome): Promise<boolean> {
    const fault = outcome.state === 'failed' ? outcome : undefined;
    return await inTransaction(this.#pool, async (client) => {
      const { rowCount } = await client.query(
        sql`update recordings set state = ${outcome.state}, settled_at = ${this.#now()},
            fault = ${fault?.reason ?? null}, fault_detail = ${fault?.detail ?? null},
            expires_at = coalesce(expires_at, ${this.#now()}), claimed_by = null, claimed_until = null
          where call_id = ${callId} and claimed_by = ${this.#ownerId} and settled_at is null
          and deleted_at is null`,
      );
      if (rowCount !== 1) return false;
      await appendLateEvents(client, this.#now(), [callId]);
      return true;
    });
  }

  /** Notes that a recording was discarded, because it was deleted before it was stored. */
  async settleDeleted(callId: string): Promise<void> {
    await this.#pool.query(
      sql`update recordings set state = 'failed', settled_at = ${this.#now()}, announced_at = ${this.#now()},
          event_sequence = 0, claimed_by = null, claimed_until = null
        where call_id = ${callId} and settled_at is null`,
    );
  }

  /** Appends the events that are owed, some at a time. Returns their number. */
  async appendOwed(): Promise<number> {
    return await inTransaction(this.#pool, (client) => appendLateEvents(client, this.#now()));
  }

  /** Returns true if the event of a recording has yet to be appended or published. */
  async isEventOwed(): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'select from recordings where settled_at is not null and announced_at is null limit 1',
    );
    return rowCount === 1;
  }

  async find(callId: string): Promise<RecordingRow | undefined> {
    const { rows } = await this.#pool.query<RecordingRow>(
      `select ${recordingColumns.text} from recordings r where r.call_id = $1`,
      [callId],
    );
    return rows[0];
  }

  /** Returns the figures of this process's recordings. */
  async figures(): Promise<RecordingFigures> {
    const { rows } = await this.#pool.query<RecordingFigures>(
      `select count(*)::integer as waiting, min(created_at) as "oldestAt" from recordings
       where settled_at is null and claimed_by = $1`,
      [this.#ownerId],
    );
    return rows[0] ?? { waiting: 0, oldestAt: null };
  }
}

/** Returns which of these processes can't be recording any more, and since when. */
export async function findLostOwners(
  queries: Queries,
  ownerIds: readonly string[],
): Promise<ReadonlyMap<string, Date | undefined>> {
  const { rows } = await queries.query<{ ownerId: string; lostAt: Date | null }>(
    `select given.owner_id as "ownerId", n.lost_at as "lostAt"
     from unnest($1::text[]) as given (owner_id) left join nodes n using (owner_id)
     where n.owner_id is null or n.lost_at is not null`,
    [ownerIds],
  );
  return new Map(rows.map(({ ownerId, lostAt }) => [ownerId, lostAt ?? undefined]));
}
