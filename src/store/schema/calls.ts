// Calls, their events, their totals, and the idempotency keys of requests.

import { sql } from '../sql.ts';

/** The callee's number in E.164 digits, as an expression on `calls` that has an index. */
export const calleeNumber = sql`coalesce(request #>> '{target,number}', substring(request #>> '{target,user}' from '^[+]([1-9][0-9]{2,14})$'))`;

/** The caller ID. Requests write the same number with and without `+`. */
export const callerId = sql`coalesce(ltrim(request ->> 'caller', '+'), '')`;

/**
 * Whether a call was answered and over within 6 s, as an expression on `calls`. Carriers charge for
 * a large share of such calls, and their analytics take it for a sign of a robocaller.
 */
export const isShort = sql`(answered_at is not null and ended_at - answered_at <= interval '6 seconds')`;

/** The campaign of the request, as an expression on `calls` that has an index. */
export const campaign = sql`(request ->> 'campaign')`;

export const calls = `
-- A call is inserted once and updated five or six times within minutes. Free space in each page
-- keeps the updates there (heap-only tuples), so that they touch no index.
create table calls (
  call_id text primary key,
  sid text not null,
  conversation_id text not null,
  account_id text not null,
  app_id text not null,
  bot_id text not null,
  request jsonb not null,
  notify_url text,
  -- JSON object of the caller's headers, encrypted.
  notify_headers bytea,
  idempotency_key text,
  -- The trunk that carries the call. Null: the call is dialled directly and needs no trunk.
  trunk text,
  -- queued, dialing, ringing, answered, ended: for people and lists. The code decides by the other
  -- columns.
  state text not null,
  -- The Status column of the interactions view.
  status text not null,
  accepted_at timestamptz(3) not null,
  -- The partition of the call's events, notifications, attempts and captures: src/store/days.ts.
  day date not null generated always as ((accepted_at at time zone 'UTC')::date) stored,
  -- A call that still waits at this time is never dialled.
  dial_before timestamptz(3) not null,
  -- Set before an INVITE may leave. A call with this mark is never dialled again.
  dial_started_at timestamptz(3),
  -- When the first INVITE left. Null although dial_started_at is set: the call waits for its turn,
  -- or the process died before it could store this.
  dialed_at timestamptz(3),
  -- The process that dials the call: NODE_ID and a part that is random for each start.
  owner_id text,
  -- The lost process from which the owner took the call over.
  previous_owner_id text,
  ringing_at timestamptz(3),
  answered_at timestamptz(3),
  ended_at timestamptz(3),
  outcome text,
  reason text,
  reason_code text,
  -- The verdict of detection at the end of the call.
  verdict text,
  sip_status integer,
  -- The rule set under which the call was permitted, or refused. Null: the account had none.
  rule_set text,
  rule_set_version integer,
  -- The calling rule that ended the call.
  rule text,
  -- The calling rule that the call waits for, and until when. Null: it waits for none. Such a call is
  -- queued and nobody's. It is checked again when it is taken after this time.
  waits_for text,
  not_before timestamptz(3),
  -- What only the call's record needs, stored with the end: src/calls/rules/evidence.ts.
  evidence jsonb,
  -- What the end means for the figures of its campaign: connected, abandoned, left, none. Null: the
  -- call is in flight.
  ftc_outcome text,
  ofcom_outcome text,
  -- The number of the last stored event. The first event is stored with the call.
  last_event_sequence integer not null default 1,
  -- The number of the last stored notification. Null: the call owes none so far.
  last_notification_sequence integer,
  -- Events up to this number are on the stream. Null: no event is known to be there.
  published_event_sequence integer,
  -- When the call was settled: all its events are on the stream, and its far end is gone.
  end_published_at timestamptz(3)
) with (fillfactor = 70);
create index calls_by_bot on calls (account_id, bot_id, accepted_at desc, call_id desc);
create index calls_by_idempotency_key on calls (account_id, idempotency_key)
  where idempotency_key is not null;
-- The digits of the callee's number. The user part of a sip: target may be a number too.
create index calls_by_number on calls (account_id, (${calleeNumber.text}), accepted_at desc)
  where ${calleeNumber.text} is not null;
create index calls_by_campaign on calls (account_id, (${campaign.text}), accepted_at desc)
  where ${campaign.text} is not null;
-- The calls that wait until their campaign may dial again, and those that it has released since.
create index calls_held_by_campaign on calls (account_id, (${campaign.text}), accepted_at)
  where not_before is not null and waits_for = 'abandoned-rate';
create index calls_released_by_campaign on calls (account_id, (${campaign.text}))
  where not_before is null and waits_for = 'abandoned-rate';
-- The calls that a campaign has dialled and that are not settled. Each check of a further call counts
-- them, so calls that are still queued are not among them.
create index calls_dialled_by_campaign on calls (account_id, (${campaign.text}))
  where ${campaign.text} is not null and dial_started_at is not null and end_published_at is null;
-- Finds a call by the CallSid that its bot knows.
create index calls_by_call_sid on calls (substr(encode(sha256(call_id::bytea), 'hex'), 1, 32))
  where request ? 'stream';
-- Calls that still need work, apart from those that wait for a calling rule: a few thousand at most,
-- whatever the size of the table.
create index calls_open on calls (accepted_at) where end_published_at is null and not_before is null;
-- The cost of taking a call does not depend on how many calls are up. The condition names only two
-- of the changing columns, because an update of any column in it writes all indexes.
create index calls_waiting on calls (coalesce(trunk, ''), accepted_at, call_id)
  where dial_started_at is null and end_published_at is null and not_before is null;
-- Calls that wait for a calling rule, by trunk and by when the sweep has to release them or to end them. There may
-- be a hundred thousand of each account, so the sweep must not read those that are not due.
create index calls_held on calls (coalesce(trunk, ''), least(not_before, dial_before)) where not_before is not null;
create index calls_held_by_account on calls (account_id, accepted_at) where not_before is not null;
-- For retention. Not on ended_at: an index on a changing column would make every end of a call a
-- costly update.
create index calls_by_age on calls (accepted_at);

-- Totals of settled calls, by the quarter of an hour in which they were accepted: every time zone
-- begins its days on one. They outlive the calls. Lists also use them, to skip the periods that have
-- no call with the requested outcome, status or verdict.
create table call_totals (
  account_id text not null,
  outcome text not null,
  status text not null,
  -- Empty: the call had no verdict.
  verdict text not null,
  slot timestamptz(0) not null,
  bot_id text not null,
  -- Empty: the call was dialled directly.
  trunk text not null,
  calls integer not null,
  answered integer not null,
  -- Answered and over within 6 s.
  short integer not null,
  talk_ms bigint not null,
  primary key (account_id, outcome, status, verdict, slot, bot_id, trunk)
) with (fillfactor = 70);
create index call_totals_by_slot on call_totals (account_id, slot);
-- For retention.
create index call_totals_by_age on call_totals (slot);

-- Settled calls by caller ID, so that one that carriers block is found. Unlike the other totals, this
-- names numbers, and a caller ID that makes few calls has a row for almost each of them, so it is kept
-- for a month only.
create table caller_totals (
  account_id text not null,
  slot timestamptz(0) not null,
  caller text not null,
  bot_id text not null,
  calls integer not null,
  answered integer not null,
  short integer not null,
  blocked integer not null,
  primary key (account_id, slot, caller, bot_id)
) with (fillfactor = 70);
-- For retention.
create index caller_totals_by_age on caller_totals (slot);

-- What another process needs to end a leg. The id of a call's first leg is the call's own id.
create table call_legs (
  call_id text not null,
  leg_id text not null,
  leg jsonb not null,
  primary key (call_id, leg_id)
);

create table idempotency_keys (
  app_id text not null,
  bot_id text not null,
  key text not null,
  -- SHA-256 of the canonical request.
  request_hash text not null,
  call_id text not null,
  -- The stored answer: {sid, callId, conversationId}.
  answer jsonb not null,
  -- 24 h after the end of the call. Infinity until the call is settled.
  expires_at timestamptz(3) not null,
  primary key (app_id, bot_id, key)
);
create index idempotency_keys_expiry on idempotency_keys (expires_at);

create table call_events (
  day date not null,
  call_id text not null,
  event_sequence integer not null,
  event_id text not null,
  type text not null,
  time timestamptz(3) not null,
  -- As text, so that an event that is read has the members in the order in which it was first sent.
  data json not null,
  -- The transaction that stored the event. A reader that stays below the oldest running transaction
  -- cannot miss an event that is committed late.
  transaction_id xid8 not null default pg_current_xact_id(),
  primary key (call_id, event_sequence, day)
) partition by list (day);
create index call_events_log on call_events (transaction_id);
`;
