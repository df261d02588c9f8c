// What sweepers, recovery, control and the notifier ask about calls.

import type { Pool } from 'pg';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallEvent, TerminalEvent } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { StoredLeg } from '../calls/contract/stored-leg.ts';
import type { EndToPublish, Owners, UnfinishedCall } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { acceptedCallOf, type CallColumns, callColumns } from './call-rows.ts';
import type { SecretBox } from './secrets.ts';

export type CallNotifying = {
  readonly appId: string;
  readonly accountId: string;
  readonly notifyUrl?: string;
  readonly notifyHeaders?: Readonly<Record<string, string>>;
};

export type CallWhereabouts =
  | { readonly phase: 'queued'; readonly call: AcceptedCall }
  | { readonly phase: 'claimed'; readonly ownerId: string }
  | { readonly phase: 'ended' };

export type CallReads = {
  /** Taken by one of these owners and not ended, oldest first. */
  unfinished(owners: Owners, limit: number): Promise<readonly UnfinishedCall[]>;
  /**
   * What ended calls of this process, or of a lost one, may still owe; oldest call first. `except`: those that somebody
   * is at.
   */
  endsToPublish(
    ownerId: string,
    except: readonly CallId[],
    limit: number,
  ): Promise<readonly EndToPublish[]>;
  /** Unknown calls are left out. */
  callForNotifying(callIds: readonly string[]): Promise<ReadonlyMap<string, CallNotifying>>;
  /** A call with a stream, by the digits of the name that its bot knows. */
  callOfSid(digits: string): Promise<{ callId: CallId; appId: string } | undefined>;
  /** Undefined: no such call. */
  whereabouts(callId: CallId): Promise<CallWhereabouts | undefined>;
};

// `end_published_at is null` is said everywhere, though `ended_at is null` implies it: it is what the partial index
// `calls_open` is known by.
const openCondition = 'end_published_at is null and ended_at is null';

const ownerIsLost = `not exists (
  select from nodes where nodes.owner_id = calls.owner_id and nodes.lost_at is null)`;

type UnfinishedColumns = CallColumns & {
  readonly owner_id: string;
  readonly dial_started_at: Date;
  readonly leg: StoredLeg | null;
  readonly ringing_at: Date | null;
  readonly answered_at: Date | null;
  readonly answered_event: CallEvent | null;
  readonly unpublished_events: readonly CallEvent[] | null;
};

type WhereaboutsColumns = CallColumns & {
  readonly owner_id: string | null;
  readonly ended: boolean;
};

type NotifyingColumns = {
  readonly call_id: string;
  readonly app_id: string;
  readonly account_id: string;
  readonly notify_url: string | null;
  readonly notify_headers: Buffer | null;
};

export function createCallReads(pool: Pool, secrets: SecretBox, logger: Logger): CallReads {
  return {
    async unfinished(owners, limit) {
      const [condition, values] =
        'except' in owners
          ? [`owner_id <> $2 and ${ownerIsLost}`, [owners.except]]
          : [`owner_id = $2 and call_id = any($3::text[])`, [owners.ownerId, owners.callIds]];
      const { rows } = await pool.query<UnfinishedColumns>(
        `select ${callColumns}, owner_id, dial_started_at, leg, ringing_at, answered_at, answered_event, unpublished_events
         from calls
         where ${openCondition} and dial_started_at is not null and ${condition}
         order by accepted_at limit $1`,
        [limit, ...values],
      );
      return rows.map(unfinishedCallOf);
    },
    async endsToPublish(ownerId, except, limit) {
      const { rows } = await pool.query<{
        call_id: CallId;
        end_event: TerminalEvent;
        unpublished_events: readonly CallEvent[] | null;
        leg: StoredLeg | null;
      }>(
        `select call_id, end_event, unpublished_events, case when owner_id <> $1 then leg end as leg from calls
         where end_published_at is null and ended_at is not null and call_id <> all($2::text[])
           and (owner_id is null or owner_id = $1 or ${ownerIsLost})
         order by accepted_at limit $3`,
        [ownerId, except, limit],
      );
      return rows.map((row) => ({
        callId: row.call_id,
        events: [...(row.unpublished_events ?? []), row.end_event],
        ...(row.leg === null ? {} : { leg: row.leg }),
      }));
    },
    async callForNotifying(callIds) {
      const { rows } = await pool.query<NotifyingColumns>(
        `select call_id, app_id, account_id, notify_url, notify_headers from calls
         where call_id = any($1::text[])`,
        [callIds],
      );
      return new Map(rows.map((row) => [row.call_id, notifyingOf(row, secrets, logger)]));
    },
    async callOfSid(digits) {
      const { rows } = await pool.query<{ call_id: CallId; app_id: string }>(
        // In the words of the index `calls_by_call_sid`.
        `select call_id, app_id from calls
         where request ? 'stream' and substr(encode(sha256(call_id::bytea), 'hex'), 1, 32) = $1`,
        [digits],
      );
      return rows.map(({ call_id: callId, app_id: appId }) => ({ callId, appId }))[0];
    },
    async whereabouts(callId) {
      const { rows } = await pool.query<WhereaboutsColumns>(
        `select ${callColumns}, owner_id, ended_at is not null as ended from calls where call_id = $1`,
        [callId],
      );
      const row = rows[0];
      if (row === undefined) return undefined;
      if (row.ended) return { phase: 'ended' };
      return row.owner_id === null
        ? { phase: 'queued', call: acceptedCallOf(row) }
        : { phase: 'claimed', ownerId: row.owner_id };
    },
  };
}

function unfinishedCallOf(row: UnfinishedColumns): UnfinishedCall {
  return {
    call: acceptedCallOf(row),
    ownerId: row.owner_id,
    dialStartedAt: row.dial_started_at,
    ...(row.leg === null ? {} : { leg: row.leg }),
    ...(row.ringing_at === null ? {} : { ringingAt: row.ringing_at }),
    ...(row.answered_at === null ? {} : { answeredAt: row.answered_at }),
    ...(row.answered_event === null ? {} : { answeredEvent: row.answered_event }),
    ...(row.unpublished_events === null ? {} : { unpublished: row.unpublished_events }),
  };
}

function notifyingOf(row: NotifyingColumns, secrets: SecretBox, logger: Logger): CallNotifying {
  const notifyHeaders =
    row.notify_headers === null
      ? undefined
      : openHeaders(row.call_id, row.notify_headers, secrets, logger);
  return {
    appId: row.app_id,
    accountId: row.account_id,
    ...(row.notify_url === null ? {} : { notifyUrl: row.notify_url }),
    ...(notifyHeaders === undefined ? {} : { notifyHeaders }),
  };
}

/** Headers that do not open must not hold up the notifications of every other call: those of this one go without. */
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
