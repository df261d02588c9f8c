// Reads from the database what a call's context is built from.

import type { CallContext } from '../calls/contract/call-context.ts';
import type { CallFact } from '../calls/contract/call-event.ts';
import { dayOf } from '../store/days.ts';
import type { Queries } from '../store/queries.ts';
import { type Sql, sql } from '../store/sql.ts';

export type NumberedFact = CallFact & { readonly eventSequence: number };

export type ContextFacts = {
  readonly metadata: CallContext['metadata'];
  /** The events that `contextOf` needs, in order. */
  readonly events: readonly NumberedFact[];
};

/** @returns undefined if there is no such call */
export async function readContextFacts(
  queries: Queries,
  callId: string,
  scope: Sql = sql`true`,
): Promise<ContextFacts | undefined> {
  const { rows: calls } = await queries.query<{
    readonly metadata: CallContext['metadata'];
    readonly accepted_at: Date;
  }>(
    sql`select request->'metadata' as metadata, accepted_at from calls
      where ${scope} and call_id = ${callId}`,
  );
  const [call] = calls;
  if (call === undefined) return undefined;
  const { rows: events } = await queries.query<NumberedFact>(
    `select event_sequence as "eventSequence", type, data from call_events
     where call_id = $1 and day = $2 and type in ('answered', 'amd') order by event_sequence`,
    [callId, dayOf(call.accepted_at)],
  );
  return { metadata: call.metadata, events };
}
