// Events that follow the end of their call: what became of its recording. A call accepts no event
// after its end from the process that owns it, so these are appended here, and only to a call that
// is settled: then all its other events are on the stream, and nobody numbers events any more.

import type { Pool, PoolClient } from 'pg';
import type { CallEvent } from '../../calls/contract/call-event.ts';
import {
  type EventColumns,
  type IdentityColumns,
  identityOf,
  toCallEvent,
} from '../calls/call-rows.ts';
import type { Day } from '../days.ts';

/** A recording's event is a few hundred bytes. */
const batch = 100;

type Owed = IdentityColumns & {
  readonly day: Day;
  readonly event_sequence: number;
  readonly state: 'stored' | 'failed';
  readonly fault: string | null;
  readonly fault_detail: string | null;
  readonly duration_ms: number | null;
  readonly paused_ms: number | null;
  readonly bytes: string | null;
  readonly sha256: string | null;
  readonly location: string | null;
  readonly key_name: string | null;
  readonly incomplete: boolean;
  readonly notify_url: string | null;
};

/**
 * Numbers the events of settled recordings, in the order in which all processes lock rows. A call
 * that retention has removed gets no event.
 */
const numberStatement = `
with due as materialized (
  select r.call_id from recordings r join calls c on c.call_id = r.call_id
  where r.settled_at is not null and r.event_sequence is null and c.end_published_at is not null
    and ($1::text[] is null or r.call_id = any($1::text[]))
  order by r.call_id limit ${batch} for update of r, c skip locked
), numbered as (
  update calls c set last_event_sequence = c.last_event_sequence + 1 from due where c.call_id = due.call_id
  returning c.call_id, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id, c.day::text as day,
    c.last_event_sequence as event_sequence, c.request #>> '{recording,notifyUrl}' as notify_url
), noted as (
  update recordings r set event_sequence = n.event_sequence from numbered n where r.call_id = n.call_id
  returning r.call_id, r.state, r.fault, r.fault_detail, r.duration_ms, r.paused_ms, r.bytes, r.sha256,
    r.location, r.key_name, r.incomplete
)
select numbered.*, noted.state, noted.fault, noted.fault_detail, noted.duration_ms, noted.paused_ms,
  noted.bytes, noted.sha256, noted.location, noted.key_name, noted.incomplete
from numbered join noted using (call_id)`;

const insertStatement = `
insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
select * from json_to_recordset($1::json)
  as row (day date, call_id text, event_sequence integer, event_id text, type text, time timestamptz, data json)`;

/** A POST is owed for an event whose request names a URL for it. */
const noticeStatement = `
insert into recording_notices (call_id, account_id, bot_id, event_id, state, created_at, next_attempt_at)
select call_id, account_id, bot_id, event_id, 'pending', $2, $2 from json_to_recordset($1::json)
  as row (call_id text, account_id text, bot_id text, event_id text)
on conflict (call_id) do nothing`;

/**
 * Appends the owed events of these recordings, or of any. Returns their number. Use it within a
 * transaction.
 */
export async function appendLateEvents(
  client: Pick<PoolClient, 'query'>,
  now: Date,
  callIds?: readonly string[],
): Promise<number> {
  const { rows: owed } = await client.query<Owed>(numberStatement, [callIds ?? null]);
  if (owed.length === 0) return 0;
  const events = owed.map((row) => ({ row, event: eventOf(row, now) }));
  const inserted = events.map(({ row, event }) => ({
    ...{ day: row.day, call_id: row.call_id, event_sequence: row.event_sequence },
    ...{ event_id: event.id, type: event.type, time: event.time, data: event.data },
  }));
  await client.query(insertStatement, [JSON.stringify(inserted)]);
  const notices = events
    .filter(({ row }) => row.notify_url !== null)
    .map(({ row: { call_id, account_id, bot_id }, event }) => ({
      ...{ call_id, account_id, bot_id, event_id: event.id },
    }));
  if (notices.length > 0) await client.query(noticeStatement, [JSON.stringify(notices), now]);
  return owed.length;
}

function eventOf(row: Owed, now: Date): CallEvent {
  const columns = {
    ...{ event_sequence: row.event_sequence, time: now },
    ...(row.state === 'stored' ? storedFact(row) : failedFact(row)),
  } as EventColumns;
  return toCallEvent(identityOf(row), columns);
}

function storedFact(row: Owed) {
  return {
    type: 'recording-stored',
    data: {
      ...{ sha256: row.sha256 ?? '', bytes: Number(row.bytes ?? 0), where: row.location ?? '' },
      ...{ durationMs: row.duration_ms ?? 0, pausedMs: row.paused_ms ?? 0 },
      ...(row.key_name === null ? {} : { key: row.key_name }),
      ...(row.incomplete ? { incomplete: true } : {}),
    },
  };
}

function failedFact(row: Owed) {
  return {
    type: 'recording-failed',
    data: {
      reason: row.fault ?? 'lost',
      ...(row.fault_detail === null ? {} : { detail: row.fault_detail }),
      durationMs: row.duration_ms ?? 0,
    },
  };
}

const unpublishedStatement = `
select c.call_id, c.sid, c.conversation_id, c.account_id, c.app_id, c.bot_id, e.event_sequence, e.type, e.time, e.data
from recordings r join calls c on c.call_id = r.call_id
join call_events e on e.day = c.day and e.call_id = r.call_id and e.event_sequence = r.event_sequence
where r.settled_at is not null and r.announced_at is null and r.event_sequence is not null
order by r.settled_at limit ${batch}`;

const publishedStatement = `
with announced as (
  update recordings r set announced_at = $2 where r.call_id = any($1::text[]) and r.announced_at is null
  returning r.call_id, r.event_sequence
)
update calls c set published_event_sequence = greatest(c.published_event_sequence, a.event_sequence)
from announced a where c.call_id = a.call_id`;

/** The calls of these recordings have been removed, with their events. Nobody waits for one. */
const orphanedStatement = `
update recordings r set announced_at = $1
where r.settled_at is not null and r.announced_at is null
  and not exists (select from calls c where c.call_id = r.call_id)`;

/**
 * Publishes the events that haven't been. Several processes may publish the same event at the same
 * time: the stream drops the repetition, because it has the event's id.
 *
 * @param publish rejects if the event may not be on the stream
 * @returns the number of published events
 */
export async function publishLateEvents(
  pool: Pick<Pool, 'query'>,
  now: Date,
  publish: (event: CallEvent) => Promise<void>,
): Promise<number> {
  await pool.query(orphanedStatement, [now]);
  const { rows } = await pool.query<IdentityColumns & EventColumns>(unpublishedStatement);
  const published: string[] = [];
  try {
    for (const row of rows) {
      await publish(toCallEvent(identityOf(row), row));
      published.push(row.call_id);
    }
  } finally {
    if (published.length > 0) await pool.query(publishedStatement, [published, now]);
  }
  return published.length;
}
