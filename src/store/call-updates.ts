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

type Rule = {
  /** Of the row `c` as it stands and the write `i`: whether the write takes effect. */
  readonly when: string;
  readonly set: Readonly<Record<string, string>>;
};

const isOpen = 'c.ended_at is null';
const isWaitingToRing = `${isOpen} and c.state in ('queued', 'dialing')`;
const isAnswered = "c.answered_at is not null or c.leg->>'dialogId' is not null";
/** The same end again, after a reply that was lost, is the same success. */
const isOpenOrEndsSo = `(${isOpen} or (c.end_event = i.event and c.end_published_at is null))`;
const ended = {
  ended_at: 'i.at',
  end_event: 'i.event',
  unpublished_events: 'i.unpublished',
  outcome: 'i.outcome',
  sip_status: 'i.sip_status',
  state: "'ended'",
  status: 'i.status',
};

// Nothing moves a state backwards, so a write that arrives late does no harm: an answered or ended call does not ring again.
const rules: Readonly<Record<UpdateRow['kind'], Rule>> = {
  invite: {
    // Not in place of an answer's leg; nor does a late INVITE take the place of the 18x to it.
    when: `not (${isAnswered})
      and (c.leg->>'remoteTag' is null or c.leg->>'transactionId' <> i.leg->>'transactionId')`,
    set: { leg: 'i.leg' },
  },
  ringing: {
    when: 'c.ringing_at is null',
    set: {
      leg: `case when ${isAnswered} then c.leg else coalesce(i.leg, c.leg) end`,
      ringing_at: 'i.at',
      state: `case when ${isWaitingToRing} then 'ringing' else c.state end`,
      status: `case when ${isWaitingToRing} then 'ringing' else c.status end`,
    },
  },
  answer: {
    when: 'c.answered_at is null',
    set: {
      // Kept even for an ended call, because somebody may have to hang it up.
      leg: 'i.leg',
      answered_at: `case when ${isOpen} then i.at end`,
      answered_event: `case when ${isOpen} then i.event else c.answered_event end`,
      unpublished_events: `case when ${isOpen} then i.unpublished else c.unpublished_events end`,
      state: `case when ${isOpen} then 'answered' else c.state end`,
      status: `case when ${isOpen} then 'answered' else c.status end`,
    },
  },
  end: { when: isOpenOrEndsSo, set: ended },
  'end-queued': { when: `c.dial_started_at is null and ${isOpenOrEndsSo}`, set: ended },
  published: {
    when: 'c.ended_at is not null and c.end_published_at is null',
    set: { unpublished_events: 'null', end_published_at: 'i.at' },
  },
};

const columns = [...new Set(Object.values(rules).flatMap(({ set }) => Object.keys(set)))];

/** What it returns took effect. */
const updateStatement = `
update calls c set
  ${columns.map((column) => `${column} = ${caseOf(({ set }) => set[column], `c.${column}`)}`).join(',\n  ')}
from json_to_recordset($1::json) as i(call_id text, kind text, at timestamptz, leg jsonb, event jsonb,
  unpublished jsonb, status text, outcome text, sip_status integer)
where c.call_id = i.call_id and ${caseOf(({ when }) => when, 'false')}
returning c.call_id`;

function caseOf(expressionOf: (rule: Rule) => string | undefined, otherwise: string): string {
  const branches = Object.entries(rules).flatMap(([kind, rule]) => {
    const expression = expressionOf(rule);
    return expression === undefined ? [] : [`when '${kind}' then ${expression}`];
  });
  return `case i.kind ${branches.join('\n    ')} else ${otherwise} end`;
}

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
