// Sends the POSTs to `recording.notifyurl`: one for each recording, when it is stored or given up,
// with its event as the body. They are signed, retried and kept as dead letters like notifications,
// but outside the order of the call's notifications: its last notification stays the last.

import type { CallEvent } from '../calls/contract/call-event.ts';
import type { Logger } from '../lib/logger.ts';
import {
  type EventColumns,
  type IdentityColumns,
  identityOf,
  toCallEvent,
} from '../store/calls/call-rows.ts';
import type { Queries } from '../store/queries.ts';
import { attemptDelivery, type Delivery, type DeliveryDeps } from './delivery.ts';

export type RecordingNoticeDeps = {
  readonly pool: Queries;
  readonly delivery: DeliveryDeps;
  /** Returns false while this process may not send, because it has lost its lease. */
  readonly mayDeliver: () => boolean;
  readonly onAttempt: (delivery: Delivery) => void;
  readonly logger: Logger;
};

/**
 * Attempts at a time. A receiver gets one POST for each recorded call, and one that hangs holds
 * each for 10 s. This many leave room for other receivers while such a one gets several a second.
 */
const maxAtOnce = 100;
/** Longer than an attempt takes (10 s). If the process dies, another one sends it again. */
const leaseFor = `interval '60 seconds'`;

const claimStatement = {
  name: 'recording notices',
  text: `
with due as materialized (
  select call_id from recording_notices
  where state = 'pending' and next_attempt_at <= $1 and (leased_until is null or leased_until < now())
  -- Receivers that fail must not hold up the others.
  order by attempts > 0, next_attempt_at limit $2 for update skip locked
), leased as (
  update recording_notices n set leased_until = now() + ${leaseFor} from due where n.call_id = due.call_id
  returning n.*
)
select l.leased_until::text as leased_until, l.event_id, l.attempts, l.attempts_before,
  coalesce(l.owed_since, l.created_at) as owed_since, l.call_id, c.sid, c.conversation_id, l.account_id, coalesce(c.app_id, '') as app_id, l.bot_id,
  e.event_sequence, e.type, e.time, e.data, c.day::text as day, c.request #>> '{recording,notifyUrl}' as notify_url
from leased l left join calls c on c.call_id = l.call_id
left join call_events e on e.day = c.day and e.call_id = l.call_id and e.event_id = l.event_id`,
} as const;

const settleStatement = {
  name: 'recording notice attempted',
  text: `
with settled as (
  update recording_notices set state = $2, attempts = $3, next_attempt_at = coalesce($4, next_attempt_at),
    leased_until = null, failure = $5,
    failed_at = case when $2 = 'failed' then $6::timestamptz end,
    delivered_at = case when $2 = 'delivered' then $6::timestamptz end
  where call_id = $1 and leased_until = $12::timestamptz
  returning event_id, call_id
)
insert into delivery_attempts (day, event_id, call_id, attempt, started_at, duration_ms, response_status, error, delivered)
select $7::date, event_id, call_id, $3, $8, $9, $10, $11, $2 = 'delivered' from settled where $7::date is not null`,
} as const;

const pendingStatement = {
  name: 'pending recording notices',
  text: `select from recording_notices where state = 'pending' limit 1`,
} as const;

type Claimed = IdentityColumns &
  EventColumns & {
    /** With microseconds. Another process has a later one if this one was suspended. */
    readonly leased_until: string;
    readonly event_id: string;
    readonly attempts: number;
    readonly attempts_before: number;
    readonly owed_since: Date;
    /** Null if retention has removed the call. */
    readonly day: string | null;
    readonly notify_url: string | null;
  };

export class RecordingNotices {
  readonly #deps: RecordingNoticeDeps;
  readonly #running = new Set<Promise<void>>();

  constructor(deps: RecordingNoticeDeps) {
    this.#deps = deps;
  }

  /**
   * Begins to attempt those that are due, until no more are due or no place is free.
   *
   * @returns false if none is pending any more
   */
  async send(): Promise<boolean> {
    const { pool, delivery, mayDeliver } = this.#deps;
    if (!mayDeliver()) return true;
    if (!(await this.#isAnyPending())) return false;
    while (this.#running.size < maxAtOnce) {
      const values = [delivery.now(), maxAtOnce - this.#running.size];
      const { rows } = await pool.query<Claimed>({ ...claimStatement, values });
      for (const row of rows) this.#begin(row);
      if (rows.length === 0) break;
    }
    return true;
  }

  /** Resolves when no attempt is running. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #begin(row: Claimed): void {
    const attempt = this.#attempt(row).finally(() => this.#running.delete(attempt));
    this.#running.add(attempt);
  }

  async #isAnyPending(): Promise<boolean> {
    return (await this.#deps.pool.query(pendingStatement)).rowCount === 1;
  }

  async #attempt(row: Claimed): Promise<void> {
    const { delivery: deps, mayDeliver, onAttempt, logger } = this.#deps;
    const recipient =
      row.notify_url === null
        ? undefined
        : { appId: row.app_id, accountId: row.account_id, notifyUrl: row.notify_url };
    const notification = {
      ...{ eventId: row.event_id, appId: row.app_id, sequence: 0, body: bodyOf(row) },
      ...{ attempts: row.attempts, attemptsBefore: row.attempts_before },
      owedSince: row.owed_since.getTime(),
    };
    try {
      const done = await attemptDelivery(deps, notification, row.call_id, recipient, mayDeliver);
      // Nothing was sent, and the lease runs out.
      if (done === undefined) return;
      await this.#settle(row, done);
      onAttempt(done);
    } catch (error) {
      logger.warn({ err: error, callId: row.call_id }, 'a POST about a recording was not settled');
    }
  }

  async #settle(
    { call_id, day, leased_until }: Claimed,
    { record, verdict }: Delivery,
  ): Promise<void> {
    const nextAt = verdict.kind === 'retry' ? new Date(verdict.at) : null;
    await this.#deps.pool.query({
      ...settleStatement,
      values: [
        ...[call_id, record.state, record.attempt, nextAt, record.failure ?? null, record.at],
        ...[day, record.startedAt, record.durationMs, record.responseStatus ?? null],
        ...[record.error ?? null, leased_until],
      ],
    });
  }
}

/** The event in the form that the event streams have. It names the call, unlike that on NATS. */
function bodyOf(row: Claimed): string {
  if (row.day === null) return '';
  const event: CallEvent = toCallEvent(identityOf(row), row);
  return JSON.stringify(event);
}
