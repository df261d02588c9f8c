// What happens to a call after it was accepted, as writes. All kinds share one statement, and so one commit: under load a
// batch holds whatever many calls have to store at that moment, and a call's own writes stay in order.

import type { Pool } from 'pg';
import type { CallEvent, TerminalEvent } from '../calls/contract/call-event.ts';
import type { InteractionStatus } from '../calls/contract/call-words.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { StoredLeg } from '../calls/contract/stored-leg.ts';
import type { CallLedger, Clock } from '../calls/ports.ts';
import { GroupWriter } from './group-writer.ts';
import { jsonRows, storableJson } from './json-rows.ts';

type UpdateRow = {
  readonly call_id: CallId;
  readonly kind: 'invite' | 'ringing' | 'answer' | 'end' | 'end-queued' | 'published';
  readonly at: Date;
  readonly leg?: StoredLeg;
  readonly event?: CallEvent;
  readonly unpublished?: readonly CallEvent[];
  readonly status?: InteractionStatus;
  readonly outcome?: string;
  readonly sip_status?: number | undefined;
};

/** The key is the call id: a call's writes keep their order. */
type Item = { readonly key: string; readonly row: string };
type Effect = 'done' | 'nothing';

// `where` says when each kind takes effect; what it returns took effect. Nothing moves a state backwards, so a write that
// arrives late does no harm: an answered or ended call does not ring again. The leg of an answer is kept even for an ended
// call, because somebody may have to hang it up, and what only cancels does not take its place; nor does a late INVITE that of
// the 18x to it.
const updateStatement = `
update calls c set
  leg = case
    when i.kind in ('invite', 'answer') then i.leg
    when i.kind = 'ringing' and c.answered_at is null and c.leg->>'dialogId' is null then coalesce(i.leg, c.leg)
    else c.leg end,
  ringing_at = case when i.kind = 'ringing' then i.at else c.ringing_at end,
  answered_at = case when i.kind = 'answer' and c.ended_at is null then i.at else c.answered_at end,
  answered_event = case when i.kind = 'answer' and c.ended_at is null then i.event else c.answered_event end,
  ended_at = case when i.kind in ('end', 'end-queued') then i.at else c.ended_at end,
  end_event = case when i.kind in ('end', 'end-queued') then i.event else c.end_event end,
  unpublished_events = case
    when i.kind in ('end', 'end-queued') then i.unpublished
    when i.kind = 'answer' and c.ended_at is null then i.unpublished
    when i.kind = 'published' then null
    else c.unpublished_events end,
  outcome = case when i.kind in ('end', 'end-queued') then i.outcome else c.outcome end,
  sip_status = case when i.kind in ('end', 'end-queued') then i.sip_status else c.sip_status end,
  end_published_at = case when i.kind = 'published' then i.at else c.end_published_at end,
  state = case
    when i.kind in ('end', 'end-queued') then 'ended'
    when c.ended_at is not null then c.state
    when i.kind = 'ringing' and c.state in ('queued', 'dialing') then 'ringing'
    when i.kind = 'answer' then 'answered'
    else c.state end,
  status = case
    when i.kind in ('end', 'end-queued') then i.status
    when c.ended_at is not null then c.status
    when i.kind = 'ringing' and c.state in ('queued', 'dialing') then 'ringing'
    when i.kind = 'answer' then 'answered'
    else c.status end
from json_to_recordset($1::json) as i(call_id text, kind text, at timestamptz, leg jsonb, event jsonb,
  unpublished jsonb, status text, outcome text, sip_status integer)
where c.call_id = i.call_id and case i.kind
  when 'invite' then c.answered_at is null and c.leg->>'dialogId' is null
    and (c.leg->>'remoteTag' is null or c.leg->>'transactionId' <> i.leg->>'transactionId')
  when 'ringing' then c.ringing_at is null
  when 'answer' then c.answered_at is null
  when 'end' then c.ended_at is null or (c.end_event = i.event and c.end_published_at is null)
  when 'end-queued' then c.dial_started_at is null
    and (c.ended_at is null or (c.end_event = i.event and c.end_published_at is null))
  when 'published' then c.ended_at is not null and c.end_published_at is null
  end
returning c.call_id`;

export function createCallUpdates(pool: Pool, clock: Clock): CallLedger {
  // One batch at a time: two could lock the same calls in another order and deadlock, and could swap a call's writes.
  const writer = new GroupWriter<Item, Effect>((items) => updateBatch(pool, items), {
    maxBatch: 200,
    // Every running call has one or two writes under way: five times the most calls of one process.
    maxWaiting: 20_000,
    concurrency: 1,
  });
  const write = async (row: UpdateRow): Promise<Effect> =>
    await writer.add({ key: row.call_id, row: storableJson(row) });
  return {
    async recordInvite(callId, leg) {
      await write({ call_id: callId, kind: 'invite', at: clock.now(), leg });
    },
    async recordRinging(callId, at, leg) {
      await write({ call_id: callId, kind: 'ringing', at, ...(leg !== undefined && { leg }) });
    },
    async recordAnswer(callId, { at, leg, event, unpublished }) {
      await write({ call_id: callId, kind: 'answer', at, leg, event, ...unlessEmpty(unpublished) });
    },
    async claimEnd(callId, event, unpublished) {
      return (await write(endRow('end', callId, event, unpublished))) === 'done';
    },
    async claimEndOfQueued(callId, event, unpublished) {
      return (await write(endRow('end-queued', callId, event, unpublished))) === 'done';
    },
    async markEndPublished(callId) {
      await write({ call_id: callId, kind: 'published', at: clock.now() });
    },
  };
}

function endRow(
  kind: 'end' | 'end-queued',
  callId: CallId,
  event: TerminalEvent,
  unpublished: readonly CallEvent[],
): UpdateRow {
  const status = event.data.machineDetected === true ? 'machineDetected' : event.type;
  return {
    call_id: callId,
    kind,
    at: new Date(event.time),
    event,
    ...unlessEmpty(unpublished),
    status,
    outcome: event.data.outcome,
    sip_status: event.data.sipStatus,
  };
}

function unlessEmpty(unpublished: readonly CallEvent[]): Pick<UpdateRow, 'unpublished'> {
  return unpublished.length === 0 ? {} : { unpublished };
}

async function updateBatch(pool: Pool, items: readonly Item[]): Promise<readonly Effect[]> {
  const { rows } = await pool.query<{ call_id: string }>(updateStatement, [
    jsonRows(items.map((item) => item.row)),
  ]);
  const changed = new Set(rows.map((row) => row.call_id));
  return items.map((item) => (changed.has(item.key) ? 'done' : 'nothing'));
}
