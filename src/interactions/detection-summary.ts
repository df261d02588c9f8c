// Summarises the verdicts of the last 24 hours, with their reasons, confidence and duration.

import type { CallOutcome } from '../calls/contract/call-words.ts';
import type { Queries } from '../store/queries.ts';

export type DetectionVerdict = {
  readonly callId: string;
  readonly event: string;
  readonly reason: string;
  readonly confidence?: number;
  readonly elapsedMs?: number;
  readonly outcome?: CallOutcome;
};

export type DetectionSummary = {
  /** The number of calls. The summary covers the newest answered calls with detection. */
  readonly calls: number;
  readonly since: string;
  readonly verdicts: readonly DetectionVerdict[];
};

/**
 * Limits the calls in a summary. A page can't show more calls, and the query already takes some
 * 100 ms with this many.
 */
const maxCalls = 2_000;
const periodMs = 86_400_000;

const statement = {
  name: 'detection summary',
  text: `
with lately as (
  select call_id, day, outcome from calls
  where accepted_at >= $1 and answered_at is not null and request->>'machineDetection' <> 'disabled'
  order by accepted_at desc limit ${maxCalls}
)
select lately.call_id, lately.outcome, verdict.amd
from lately left join lateral (
  select data->'amd' as amd from call_events e
  where e.day = lately.day and e.call_id = lately.call_id and e.type = 'amd'
  order by case when data->'amd'->>'event' in ('amd_human_detected', 'amd_machine_detected') then 0 else 1 end, event_sequence
  limit 1
) verdict on true`,
} as const;

type Columns = {
  readonly call_id: string;
  readonly outcome: CallOutcome | null;
  /** The `amd` event's data. Not typed, because a different version may have written it. */
  readonly amd: Readonly<Record<string, unknown>> | null;
};

/** Summarises calls from all accounts. */
export async function detectionSummary(queries: Queries, now: Date): Promise<DetectionSummary> {
  const since = new Date(now.getTime() - periodMs);
  const { rows } = await queries.query<Columns>({ ...statement, values: [since] });
  return {
    calls: rows.length,
    since: since.toISOString(),
    verdicts: rows.flatMap((row) => (row.amd === null ? [] : [verdictOf(row, row.amd)])),
  };
}

function verdictOf(
  { call_id, outcome }: Columns,
  { event, reason, confidence, elapsedMs }: NonNullable<Columns['amd']>,
): DetectionVerdict {
  return {
    callId: call_id,
    event: String(event),
    reason: String(reason),
    ...(typeof confidence === 'number' ? { confidence } : {}),
    ...(typeof elapsedMs === 'number' ? { elapsedMs } : {}),
    ...(outcome === null ? {} : { outcome }),
  };
}
