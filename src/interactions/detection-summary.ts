// Summarises the verdicts of the last 24 hours: the first one of each call, with its reason,
// confidence and duration, and the final one, which may correct it.

import type { CallOutcome } from '../calls/contract/call-words.ts';
import { type AmdEvent, amdVerdicts, verdictOf } from '../calls/detection/amd-event.ts';
import type { Queries } from '../store/queries.ts';

export type DetectionVerdict = {
  readonly callId: string;
  /** Whether the call belongs to the account that asks. */
  readonly isOwn: boolean;
  /** The first verdict, on which the bot began to act. */
  readonly event: string;
  /** The verdict after all corrections. */
  readonly final: string;
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
  select call_id, day, account_id, outcome from calls
  where accepted_at >= $1 and answered_at is not null and request->>'machineDetection' <> 'disabled'
  order by accepted_at desc limit ${maxCalls}
)
select lately.call_id, lately.account_id, lately.outcome, (
  select json_agg(json_build_object('event', amd->'event', 'reason', amd->'reason', 'confidence', amd->'confidence',
    'elapsedMs', amd->'elapsedMs', 'round', coalesce(amd->'round', '1'), 'corrects', amd->'corrects') order by event_sequence)
  from (
    select data->'amd' as amd, event_sequence from call_events e
    where e.day = lately.day and e.call_id = lately.call_id and e.type = 'amd'
  ) as stated
) as events
from lately`,
} as const;

type Columns = {
  readonly call_id: string;
  readonly account_id: string;
  readonly outcome: CallOutcome | null;
  /** The data of the `amd` events, in order, with null for members that an event doesn't have. */
  readonly events: readonly Nullable<AmdEvent>[] | null;
};

type Nullable<Event> = { readonly [Name in keyof Event]: Event[Name] | null };

/** Summarises calls from all accounts, for an app of the account `accountId`. */
export async function detectionSummary(
  queries: Queries,
  now: Date,
  accountId: string,
): Promise<DetectionSummary> {
  const since = new Date(now.getTime() - periodMs);
  const { rows } = await queries.query<Columns>({ ...statement, values: [since] });
  return {
    calls: rows.length,
    since: since.toISOString(),
    verdicts: rows.flatMap((row) => verdictsOf(row, row.account_id === accountId)),
  };
}

const names: readonly string[] = amdVerdicts;

/** @returns an empty list if detection has not decided yet */
function verdictsOf(
  { call_id, outcome, events }: Columns,
  isOwn: boolean,
): readonly DetectionVerdict[] {
  const known = (events ?? []).map(
    (event) =>
      Object.fromEntries(Object.entries(event).filter(([, value]) => value !== null)) as AmdEvent,
  );
  const first = known.find(({ event }) => names.includes(event));
  if (first === undefined) return [];
  const { event, reason, confidence, elapsedMs } = first;
  return [
    {
      ...{ callId: call_id, isOwn, event, final: verdictOf(known) ?? event, reason, elapsedMs },
      ...(confidence === undefined ? {} : { confidence }),
      ...(outcome === null ? {} : { outcome }),
    },
  ];
}
