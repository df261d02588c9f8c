// For one version: events that a gateway without an outbox published, onto the timelines of their calls. What is known stands.

import type { Pool } from 'pg';
import type { CallEvent } from '../../calls/contract/call-event.ts';
import { jsonRows, storableJson } from '../json-rows.ts';

const insertStatement = `
insert into call_events (call_id, event_sequence, event_id, type, time, data)
select call_id, event_sequence, event_id, type, time, data
from json_to_recordset($1::json) as e(
  call_id text, event_sequence integer, event_id text, type text, time timestamptz, data jsonb)
on conflict do nothing`;

export function createOlderEventWriter(
  pool: Pool,
): (events: readonly CallEvent[]) => Promise<void> {
  return async (events) => {
    const rows = events.map(({ callId, eventSequence, id, type, time, data }) =>
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
