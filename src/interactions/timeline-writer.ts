// Facts → rows of `call_events`: the timeline of a call. Idempotent by event id.

import type { Pool } from 'pg';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { jsonRows, storableJson } from '../store/json-rows.ts';

const insertStatement = `
insert into call_events (call_id, event_sequence, event_id, type, time, data)
select call_id, event_sequence, event_id, type, time, data
from json_to_recordset($1::json) as f(
  call_id text, event_sequence integer, event_id text, type text, time timestamptz, data jsonb)
on conflict do nothing`;

/** A handler for `startFactConsumer`, whose `maxBatch` bounds the statement. */
export function createTimelineWriter(pool: Pool): (facts: readonly CallEvent[]) => Promise<void> {
  return async (facts) => {
    const rows = facts.map(({ callId, eventSequence, id, type, time, data }) =>
      storableJson({
        call_id: callId,
        event_sequence: eventSequence,
        event_id: id,
        type,
        time,
        data,
      }),
    );
    await pool.query(insertStatement, [jsonRows(rows)]);
  };
}
