// Calling rules: which accounts have any, the rule sets, who may not be called, and the record of
// each call.

export const rules = `
-- Accounts that have had a rule set or a suppression. Calls of all other accounts are taken without
-- a further statement. Each row of call_takes holds a copy of this list.
create table ruled_accounts (
  account_id text primary key
);

-- The attempts of a ruled account to call a number. The check of a call locks the row. The two arrays
-- have one entry per attempt, oldest first: the call, and when its INVITE left, or when it was
-- permitted as long as no INVITE is known. An entry is removed if its call ends without an INVITE. At
-- most 100 entries are kept, none older than 366 days, because no rule counts more.
create table called_numbers (
  account_id text not null,
  -- E.164: + and digits.
  number text collate "C" not null,
  call_ids text[] not null,
  attempted_at timestamptz(3)[] not null,
  -- The last answer, and the last abandoned call.
  answered_at timestamptz(3),
  abandoned_at timestamptz(3),
  -- For retention.
  used_at timestamptz(3) not null,
  primary key (account_id, number)
) with (fillfactor = 60);
create index called_numbers_by_age on called_numbers using brin (used_at);

-- Each version of each rule set. Rows are never deleted, because records of calls name them.
create table rule_sets (
  account_id text not null,
  name text not null,
  version integer not null,
  -- As text, so that an account reads its document as it wrote it.
  document json not null,
  changed_at timestamptz(3) not null,
  changed_by_app text not null,
  -- The newest version of its name.
  is_current boolean not null,
  -- When the rule set was deleted. Only the newest version has it.
  deleted_at timestamptz(3),
  primary key (account_id, name, version)
);
create unique index rule_sets_current on rule_sets (account_id, name) where is_current;

-- One row for each settled call of every account, whatever its rules. A row outlives its call, so it
-- repeats what it needs from the call and from the request. It is inserted once and never updated.
create table call_records (
  account_id text not null,
  accepted_at timestamptz(3) not null,
  call_id text not null,
  app_id text not null,
  bot_id text not null,
  trunk text,
  -- The digits of the number that was called, as in calls_by_number.
  number text,
  -- The target of the request, unless it is only a number.
  target jsonb,
  caller text not null,
  caller_name text,
  -- When the first INVITE left. Null: none is known to have left.
  dialed_at timestamptz(3),
  ringing_at timestamptz(3),
  answered_at timestamptz(3),
  ended_at timestamptz(3) not null,
  outcome text not null,
  reason_code text,
  -- Who picked up, as detection saw it at the end of the call.
  verdict text,
  campaign text,
  time_zone text,
  -- {basis, at, reference} of the request.
  consent jsonb,
  -- The rules under which the call was permitted, or by which it ended, and the rule that ended it.
  rule_set text,
  rule_set_version integer,
  rule text,
  -- As in calls: what the call means for the figures of its campaign.
  ftc_outcome text,
  ofcom_outcome text,
  -- The evidence of the call: src/calls/rules/evidence.ts.
  evidence jsonb,
  primary key (account_id, accepted_at, call_id)
);
create index call_records_by_number on call_records (account_id, number, accepted_at)
  where number is not null;
-- For retention. Rows are stored roughly in the order of their calls, which makes this index tiny.
create index call_records_by_age on call_records using brin (accepted_at);

-- Numbers and sip: URIs that no call of the account may reach.
create table suppressions (
  account_id text not null,
  -- + and the digits of an E.164 number, or sip:user@host without a port. Sorted by bytes, so that
  -- statements lock and list addresses in the same order on every database.
  address text collate "C" not null,
  -- opt-out, do-not-call, invalid, complaint or other.
  reason text not null,
  -- Where the suppression came from, in the words of the app.
  source text not null,
  -- Null: the suppression does not expire.
  until timestamptz(3),
  created_at timestamptz(3) not null,
  -- The app that stored the suppression last.
  app_id text not null,
  primary key (account_id, address)
);
-- For retention.
create index suppressions_by_age on suppressions (until) where until is not null;

-- A campaign under a rule set: what its current window of 30 days counts, and what holds it. The row is
-- made with the first call that is permitted, and the check of each further call locks it if the rule
-- set may hold the campaign.
create table campaigns (
  account_id text not null,
  campaign text not null,
  -- The rule set of the last call that was permitted.
  rule_set text not null,
  -- The slot of the first call. The windows of 30 days begin with it.
  began_at timestamptz(0) not null,
  -- The current window: its beginning, and its settled calls. The same is in campaign_totals, but the
  -- check of a call must not add up a month.
  window_from timestamptz(0) not null,
  decided integer not null default 0,
  answered_by_person integer not null default 0,
  abandoned integer not null default 0,
  -- Since when calls wait for abandoned-rate. Null: none does.
  held_since timestamptz(3),
  -- When the next probe may leave, and the pause before it.
  held_until timestamptz(3),
  pause_ms integer,
  -- The probe in flight.
  probe_call_id text,
  primary key (account_id, campaign)
) with (fillfactor = 50);
create index campaigns_held on campaigns (account_id, campaign) where held_since is not null;

-- Settled calls of campaigns under a rule set that were dialled and had detection, by the quarter of an
-- hour in which they were answered, or ended. A person has an outcome by each of two formulas:
-- src/calls/abandonment/abandonment.ts.
create table campaign_totals (
  account_id text not null,
  campaign text not null,
  slot timestamptz(0) not null,
  calls integer not null,
  answered_by_person integer not null,
  ftc_connected integer not null,
  ftc_abandoned integer not null,
  ofcom_connected integer not null,
  ofcom_abandoned integer not null,
  primary key (account_id, campaign, slot)
) with (fillfactor = 70);
-- For retention.
create index campaign_totals_by_age on campaign_totals (slot);
`;
