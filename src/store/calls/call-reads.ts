// Reads calls for sweeps, recovery, commands and the notifier.

import type { Pool } from 'pg';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type { CallEvent } from '../../calls/contract/call-event.ts';
import type { CallId } from '../../calls/contract/identity.ts';
import type { StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { Unfinished, UnfinishedCall, UnsettledEnd } from '../../calls/ports.ts';
import type { Logger } from '../../lib/logger.ts';
import { type TraceHeaders, traceHeadersOf } from '../../lib/trace-context.ts';
import type { SecretBox } from '../secrets.ts';
import {
  type CallColumns,
  callColumns,
  type EventColumns,
  toAcceptedCall,
  toCallEvent,
} from './call-rows.ts';

export type CallNotifying = {
  readonly appId: string;
  readonly accountId: string;
  /** Undefined if the call doesn't send notifications. */
  readonly notifyUrl?: string;
  readonly notifyHeaders?: Readonly<Record<string, string>>;
  /** W3C Trace Context of the request that created the call. */
  readonly trace?: TraceHeaders;
};

export type CallOwnership =
  | { readonly phase: 'queued'; readonly call: AcceptedCall }
  | { readonly phase: 'claimed'; readonly ownerId: string }
  | { readonly phase: 'ended' };

export type CallReads = {
  /** Returns this process's calls that haven't ended yet, oldest first. */
  unfinished(ownerId: string, which: Unfinished, limit: number): Promise<readonly UnfinishedCall[]>;
  /**
   * Returns this process's ended calls that may still have unpublished events or legs to hang up,
   * oldest first. `except` lists calls that this process is already working on.
   */
  unsettledEnds(
    ownerId: string,
    except: readonly CallId[],
    limit: number,
  ): Promise<readonly UnsettledEnd[]>;
  /** Unknown calls are missing from the map. */
  callForNotifying(callIds: readonly string[]): Promise<ReadonlyMap<string, CallNotifying>>;
  /**
   * Finds a call. If the call has a stream, `digits` must match the CallSid that the bot knows.
   * Otherwise `callId` must match.
   */
  callOfSid(digits: string, callId: string): Promise<{ callId: CallId; appId: string } | undefined>;
  /** @returns undefined if there is no such call */
  ownership(callId: CallId): Promise<CallOwnership | undefined>;
};

// Each condition includes `end_published_at is null and not_before is null`, although the others
// imply it. Otherwise the planner wouldn't use the partial index `calls_open`.
const openCondition = 'end_published_at is null and not_before is null and ended_at is null';

const storedLegs =
  '(select json_agg(l.leg order by l.leg_id) from call_legs l where l.call_id = calls.call_id)';

/**
 * Selects the events after `sequence`. Omits the fields that identify the call, because the call's
 * row already contains them.
 */
export const eventsAbove = (sequence: string) => `
  coalesce((select json_agg(json_build_object('type', e.type, 'time', e.time,
      'event_sequence', e.event_sequence, 'data', e.data) order by e.event_sequence)
    from call_events e where e.day = calls.day and e.call_id = calls.call_id and e.event_sequence > ${sequence}), '[]')`;

/** PostgreSQL's JSON contains times as text. */
export type EventRow = Omit<EventColumns, 'time'> & { readonly time: string };

type UnfinishedColumns = CallColumns & {
  readonly owner_id: string;
  readonly legs: readonly StoredLeg[] | null;
  readonly ringing_at: Date | null;
  readonly answered_at: Date | null;
  readonly events: readonly EventRow[];
};

type UnsettledColumns = CallColumns & {
  readonly legs: readonly StoredLeg[] | null;
  readonly events: readonly EventRow[];
};

type OwnershipColumns = CallColumns & {
  readonly owner_id: string | null;
  readonly ended: boolean;
};

type NotifyingColumns = {
  readonly call_id: string;
  readonly app_id: string;
  readonly account_id: string;
  readonly notify_url: string | null;
  readonly notify_headers: Buffer | null;
  readonly traceparent: string | null;
  readonly tracestate: string | null;
};

export function createCallReads(pool: Pool, secrets: SecretBox, logger: Logger): CallReads {
  return {
    async unfinished(ownerId, which, limit) {
      const [condition, values] =
        which === 'taken over'
          ? ['previous_owner_id is not null', []]
          : ['call_id = any($3::text[])', [which.callIds]];
      const { rows } = await pool.query<UnfinishedColumns>(
        `select ${callColumns}, coalesce(previous_owner_id, owner_id) as owner_id, ${storedLegs} as legs, ringing_at, answered_at,
           ${eventsAbove('0')} as events
         from calls
         where ${openCondition} and dial_started_at is not null and owner_id = $2 and ${condition}
         order by accepted_at limit $1`,
        [limit, ownerId, ...values],
      );
      return rows.map(toUnfinishedCall);
    },
    async unsettledEnds(ownerId, except, limit) {
      const { rows } = await pool.query<UnsettledColumns>(
        `select ${callColumns}, case when previous_owner_id is not null then ${storedLegs} end as legs,
           ${eventsAbove('coalesce(calls.published_event_sequence, 0)')} as events
         from calls
         where end_published_at is null and not_before is null and ended_at is not null and owner_id = $1 and call_id <> all($2::text[])
         order by accepted_at limit $3`,
        [ownerId, except, limit],
      );
      return rows.map(toUnsettledEnd);
    },
    async callForNotifying(callIds) {
      const { rows } = await pool.query<NotifyingColumns>(
        `select call_id, app_id, account_id, notify_url, notify_headers, request ->> 'traceparent' as traceparent,
           request ->> 'tracestate' as tracestate
         from calls
         where call_id = any($1::text[])`,
        [callIds],
      );
      return new Map(rows.map((row) => [row.call_id, toNotifying(row, secrets, logger)]));
    },
    async callOfSid(digits, callId) {
      const { rows } = await pool.query<{ call_id: CallId; app_id: string }>(
        // These expressions must match the index `calls_by_call_sid`.
        `select call_id, app_id from calls
         where request ? 'stream' and substr(encode(sha256(call_id::bytea), 'hex'), 1, 32) = $1
         union all
         select call_id, app_id from calls where call_id = $2 and not request ? 'stream'`,
        [digits, callId],
      );
      return rows.map((row) => ({ callId: row.call_id, appId: row.app_id }))[0];
    },
    async ownership(callId) {
      const { rows } = await pool.query<OwnershipColumns>(
        `select ${callColumns}, owner_id, ended_at is not null as ended from calls where call_id = $1`,
        [callId],
      );
      const row = rows[0];
      if (row === undefined) return undefined;
      if (row.ended) return { phase: 'ended' };
      return row.owner_id === null
        ? { phase: 'queued', call: toAcceptedCall(row) }
        : { phase: 'claimed', ownerId: row.owner_id };
    },
  };
}

function toUnfinishedCall(row: UnfinishedColumns): UnfinishedCall {
  const call = toAcceptedCall(row);
  return {
    call,
    ownerId: row.owner_id,
    events: row.events.map((event) => toEvent(call, event)),
    legs: row.legs ?? [],
    ...(row.ringing_at === null ? {} : { ringingAt: row.ringing_at }),
    ...(row.answered_at === null ? {} : { answeredAt: row.answered_at }),
  };
}

function toUnsettledEnd(row: UnsettledColumns): UnsettledEnd {
  const call = toAcceptedCall(row);
  const events = row.events.map((event) => toEvent(call, event));
  return { call, events, legs: row.legs ?? [] };
}

export function toEvent(call: AcceptedCall, event: EventRow): CallEvent {
  return toCallEvent(call, { ...event, time: new Date(event.time) });
}

function toNotifying(row: NotifyingColumns, secrets: SecretBox, logger: Logger): CallNotifying {
  const notifyHeaders =
    row.notify_headers === null
      ? undefined
      : openHeaders(row.call_id, row.notify_headers, secrets, logger);
  const trace = traceHeadersOf(row);
  return {
    appId: row.app_id,
    accountId: row.account_id,
    ...(row.notify_url === null ? {} : { notifyUrl: row.notify_url }),
    ...(notifyHeaders === undefined ? {} : { notifyHeaders }),
    ...(trace === undefined ? {} : { trace }),
  };
}

/**
 * Decrypts a call's notification headers. If that fails, this call's notifications are sent without
 * the headers, so that they don't hold up other calls' notifications.
 */
function openHeaders(
  callId: string,
  sealed: Buffer,
  secrets: SecretBox,
  logger: Logger,
): Readonly<Record<string, string>> | undefined {
  try {
    return JSON.parse(secrets.open('notify-headers', callId, sealed)) as Record<string, string>;
  } catch (error) {
    logger.error({ err: error, callId }, 'notify headers cannot be read');
    return undefined;
  }
}
