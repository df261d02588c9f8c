// Marks ended calls as settled, which means that nothing is left to do for them: all their events
// have been published to the stream, and nobody is connected any more. Because this isn't urgent,
// calls that end at about the same time share a statement.

import type { Pool } from 'pg';
import type { CallId } from '../../calls/contract/identity.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import { acceptedSlot } from '../calls/call-slots.ts';
import { fewRows } from '../few-rows.ts';
import { recordedOutcome } from '../rules/campaign-outcomes.ts';
import { settledCampaigns } from '../rules/campaigns.ts';
import { calleeNumber, callerId, campaign, isShort } from '../schema/calls.ts';

/**
 * An ended call waits this long for others, because the statement is one of the most expensive of
 * a call. Until then, summaries and rules count the call from its own row, and only its record is
 * missing.
 */
const lingerMs = 1_000;
/** We pause after a failure, because the database may be unreachable. */
const retryMs = 1_000;
/** Beyond this limit, we leave calls to the sweep for unsettled calls. */
const maxWaiting = 50_000;

/**
 * Settles calls, writes their records and adds them to the totals. A call is settled only once, so
 * it is recorded and counted only once, whichever process does it and however often the statement
 * is repeated. If the database of the calls was restored from a backup, a call may have a record
 * already, which stays as it is. The idempotency key of a settled call lives for another 24 h; the
 * statement locks keys in the order in which the intake locks them. All processes lock the rows of
 * the totals in the same order. A process runs the statement at most once a second, so the
 * processes rarely wait for each other's rows. PostgreSQL runs `by_caller` after the main query,
 * so that all processes lock the two tables in the same order too.
 */
const settleStatement = {
  name: 'settle calls',
  text: `
with settled as (
  update calls c set published_event_sequence = last_event_sequence,
    end_published_at = clock_timestamp()
  from unnest($1::text[]) as given(call_id)
  where ${fewRows('given.call_id')} and c.call_id = given.call_id and owner_id = $2 and ended_at is not null
    and end_published_at is null
  returning c.*, ${callerId.text} as caller
), keyed as materialized (
  select k.app_id, k.bot_id, k.key, s.ended_at
  from settled s join idempotency_keys k
    on k.app_id = s.app_id and k.bot_id = s.bot_id and k.key = s.idempotency_key
  where s.idempotency_key is not null and k.call_id = s.call_id
  order by k.app_id, k.bot_id, k.key for update of k
), expiring as (
  update idempotency_keys k set expires_at = keyed.ended_at + interval '24 hours'
  from keyed where k.app_id = keyed.app_id and k.bot_id = keyed.bot_id and k.key = keyed.key
), recorded as (
  insert into call_records (account_id, accepted_at, call_id, app_id, bot_id, trunk, number, target,
    caller, caller_name, dialed_at, ringing_at, answered_at, ended_at, outcome, reason_code, verdict,
    campaign, time_zone, consent, rule_set, rule_set_version, rule, ftc_outcome,
    ofcom_outcome, evidence)
  select account_id, accepted_at, call_id, app_id, bot_id, trunk, ${calleeNumber.text},
    case when request #>> '{target,kind}' <> 'tel' or request #> '{target,ext}' is not null
      then request -> 'target' end,
    request ->> 'caller', request ->> 'callerName', dialed_at, ringing_at, answered_at, ended_at,
    coalesce(outcome, 'unknown'), reason_code, verdict, ${campaign.text}, request ->> 'timeZone',
    request -> 'consent', rule_set, rule_set_version, rule, ${recordedOutcome('ftc')},
    ${recordedOutcome('ofcom')}, evidence
  from settled
  on conflict do nothing
), by_caller as (
  insert into caller_totals as known (account_id, slot, caller, bot_id, calls, answered, short,
    blocked)
  select account_id, ${acceptedSlot.text} as slot, caller, bot_id, count(*),
    count(answered_at), count(*) filter (where ${isShort.text}), count(*) filter (where outcome = 'blocked')
  from settled
  group by 1, 2, 3, 4
  order by 1, 2, 3, 4
  on conflict (account_id, slot, caller, bot_id) do update set
    calls = known.calls + excluded.calls, answered = known.answered + excluded.answered,
    short = known.short + excluded.short, blocked = known.blocked + excluded.blocked
), ${settledCampaigns}
insert into call_totals as known (account_id, outcome, status, verdict, slot, bot_id, trunk,
  calls, answered, short, talk_ms)
select account_id, coalesce(outcome, 'unknown') as outcome, status, coalesce(verdict, '') as verdict,
  ${acceptedSlot.text} as slot, bot_id, coalesce(trunk, '') as trunk, count(*), count(answered_at),
  count(*) filter (where ${isShort.text}), coalesce(sum(round(extract(epoch from greatest(ended_at - answered_at, interval '0')) * 1000)), 0)
from settled
group by 1, 2, 3, 4, 5, 6, 7
order by 1, 2, 3, 4, 5, 6, 7
on conflict (account_id, outcome, status, verdict, slot, bot_id, trunk) do update set
  calls = known.calls + excluded.calls, answered = known.answered + excluded.answered,
  short = known.short + excluded.short, talk_ms = known.talk_ms + excluded.talk_ms`,
} as const;

/**
 * Marks the `queued` events of waiting calls as published, so that the process that later claims
 * such a call doesn't have to publish its `queued` event again.
 */
const markStatement = {
  name: 'mark queued calls',
  text: `
update calls set published_event_sequence = 1
where call_id = any($1::text[]) and published_event_sequence is null`,
} as const;

/**
 * Deletes the stored legs of calls in which nobody is connected any more. Otherwise, a process that
 * takes over such a call before it's settled would hang it up again.
 */
const deleteLegsStatement = {
  name: 'legs that are over',
  text: 'delete from call_legs where call_id = any($1::text[])',
} as const;

type Kind = 'settled' | 'queued' | 'over';

export class Settling {
  readonly #pool: Pool;
  readonly #ownerId: string;
  readonly #isHere: (callId: CallId) => boolean;
  readonly #logger: Logger;
  readonly #waiting = {
    settled: new Set<CallId>(),
    queued: new Set<CallId>(),
    /** Unsettled calls whose last leg has ended during this turn. */
    over: new Set<CallId>(),
  };
  /**
   * The calls that were in `over` in the previous turn. Their events are still waiting for NATS or
   * the database.
   */
  #previouslyOver: readonly CallId[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStopping = false;

  /**
   * `isHere` reports whether this process is handling the call. If it is, the call's next step
   * stores which events have been published.
   */
  constructor(pool: Pool, ownerId: string, isHere: (callId: CallId) => boolean, logger: Logger) {
    this.#pool = pool;
    this.#ownerId = ownerId;
    this.#isHere = isHere;
    this.#logger = logger;
  }

  /**
   * Marks a call as settled, and retries until that succeeds. Otherwise the sweep for unsettled
   * calls would hang up the call again.
   */
  settle(callId: CallId): void {
    this.#add('settled', callId);
  }

  /**
   * Notes that all of the call's legs have ended. We only store this if the call can't be settled
   * soon.
   */
  noteLegsGone(callId: CallId): void {
    this.#add('over', callId);
  }

  markQueuedPublished(callId: CallId): void {
    this.#add('queued', callId);
  }

  holds(callId: CallId): boolean {
    return this.#waiting.settled.has(callId);
  }

  /**
   * Tries once more to store the waiting marks. If that fails, they are left to the next process.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#flush();
  }

  #add(kind: Kind, callId: CallId): void {
    if (this.#waiting[kind].size >= maxWaiting) return;
    this.#waiting[kind].add(callId);
    this.#arm();
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#running;
    this.#running = this.#write();
    await this.#running;
    if (this.#previouslyOver.length > 0) this.#arm();
  }

  #arm(waitMs = lingerMs): void {
    if (this.#isStopping) return;
    const flush = (): void => inBackground(this.#flush(), this.#logger, 'marking calls as settled');
    this.#timer ??= setTimeout(flush, waitMs);
  }

  async #write(): Promise<void> {
    const settled = [...this.#waiting.settled];
    const queued = [...this.#waiting.queued];
    const over = this.#takeOver();
    try {
      if (settled.length > 0) {
        await this.#pool.query({ ...settleStatement, values: [settled, this.#ownerId] });
      }
      if (over.length > 0) await this.#pool.query({ ...deleteLegsStatement, values: [over] });
      const elsewhere = queued.filter((callId) => !this.#isHere(callId));
      if (elsewhere.length > 0) await this.#pool.query({ ...markStatement, values: [elsewhere] });
    } catch (error) {
      this.#logger.warn({ err: error }, 'ended calls could not be marked as settled');
      this.#previouslyOver = [...over, ...this.#previouslyOver].slice(0, maxWaiting);
      this.#arm(retryMs);
      return;
    }
    for (const callId of settled) this.#waiting.settled.delete(callId);
    for (const callId of queued) this.#waiting.queued.delete(callId);
  }

  /**
   * Returns the previous turn's calls that are still unsettled, and keeps this turn's calls for the
   * next turn.
   */
  #takeOver(): readonly CallId[] {
    const { settled, over } = this.#waiting;
    const isOpen = (callId: CallId): boolean => !settled.has(callId);
    const due = this.#previouslyOver.filter(isOpen);
    const later = [...over].filter(isOpen);
    over.clear();
    this.#previouslyOver = this.#isStopping ? [] : later;
    return this.#isStopping ? [...due, ...later] : due;
  }
}
