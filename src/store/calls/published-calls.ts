// Reads which events of which calls have been published, so that a repair can compare them with the
// stream. Pages keep each statement and each answer small.

import type { Pool } from 'pg';
import type { CallEvent } from '../../calls/contract/call-event.ts';
import { type EventRow, eventsAbove, toEvent } from './call-reads.ts';
import { type CallColumns, callColumns, toAcceptedCall } from './call-rows.ts';

/** A call as the repair needs it. Also goes through the admin server, so it has no dates. */
export type PublishedCall = {
  readonly callId: string;
  /** Orders the calls, together with `callId`. In milliseconds. */
  readonly acceptedAtMs: number;
  /** Events up to this number have been published. 0 if unknown. */
  readonly publishedThrough: number;
  readonly events: readonly PublishedEvent[];
};

type PublishedEvent = {
  readonly id: string;
  readonly eventSequence: number;
  readonly timeMs: number;
};

export type PublishedCallsQuery = {
  /** Start after this call. The first page starts at `acceptedAtMs` with an empty `callId`. */
  readonly after: Pick<PublishedCall, 'acceptedAtMs' | 'callId'>;
  /** Only events since this time, in milliseconds. */
  readonly sinceMs: number;
  readonly limit: number;
  /** Only unsettled calls of this owner. Default: all calls. */
  readonly ownerId?: string | undefined;
};

export type PublishedCalls = {
  /** Returns the next calls in the order in which they were accepted. */
  page(query: PublishedCallsQuery): Promise<readonly PublishedCall[]>;
  /** Returns all the stored events of these calls. Each call's events are in order. */
  eventsOf(callIds: readonly string[]): Promise<readonly CallEvent[]>;
  /** Returns the most recently accepted calls that are settled. */
  lastSettled(limit: number): Promise<readonly PublishedCall[]>;
  /** Returns the most recently accepted calls that have published an event and aren't settled. */
  lastUnsettled(limit: number): Promise<readonly PublishedCall[]>;
};

type Columns = {
  readonly call_id: string;
  readonly accepted_at: Date;
  readonly published: number;
  readonly events: readonly (readonly [id: string, eventSequence: number, timeMs: number])[] | null;
};

/** `$1` is the time of the first event, in milliseconds. */
const columns = `
  call_id, accepted_at, coalesce(published_event_sequence, 0) as published,
  (select json_agg(json_build_array(e.event_id, e.event_sequence,
      (extract(epoch from e.time) * 1000)::bigint) order by e.event_sequence)
    from call_events e
    where e.day = calls.day and e.call_id = calls.call_id and e.time >= to_timestamp($1::float8 / 1000)) as events`;

export function createPublishedCalls(pool: Pick<Pool, 'query'>): PublishedCalls {
  const newest = async (condition: string, limit: number): Promise<readonly PublishedCall[]> => {
    const { rows } = await pool.query<Columns>(
      `select ${columns} from calls where ${condition} order by accepted_at desc limit $2`,
      [0, limit],
    );
    return rows.map(toPublishedCall);
  };
  return {
    async page({ after, sinceMs, limit, ownerId }) {
      const ofOwner =
        ownerId === undefined
          ? ''
          : 'and owner_id = $5 and end_published_at is null and not_before is null';
      const { rows } = await pool.query<Columns>(
        `select ${columns} from calls
         where accepted_at >= to_timestamp($2::float8 / 1000)
           and (accepted_at, call_id) > (to_timestamp($2::float8 / 1000), $3) ${ofOwner}
         order by accepted_at, call_id limit $4`,
        [
          ...[sinceMs, after.acceptedAtMs, after.callId, limit],
          ...(ownerId === undefined ? [] : [ownerId]),
        ],
      );
      return rows.map(toPublishedCall);
    },
    async eventsOf(callIds) {
      const { rows } = await pool.query<CallColumns & { readonly events: readonly EventRow[] }>(
        `select ${callColumns}, ${eventsAbove('0')} as events from calls where call_id = any($1::text[])`,
        [callIds],
      );
      return rows.flatMap((row) => {
        const call = toAcceptedCall(row);
        return row.events.map((event) => toEvent(call, event));
      });
    },
    lastSettled: (limit) => newest('end_published_at is not null', limit),
    lastUnsettled: (limit) =>
      newest(
        'end_published_at is null and not_before is null and published_event_sequence > 0',
        limit,
      ),
  };
}

function toPublishedCall(row: Columns): PublishedCall {
  return {
    callId: row.call_id,
    acceptedAtMs: row.accepted_at.getTime(),
    publishedThrough: row.published,
    events: (row.events ?? []).map(([id, eventSequence, timeMs]) => ({
      ...{ id, eventSequence, timeMs },
    })),
  };
}
