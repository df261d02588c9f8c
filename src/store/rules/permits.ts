// Decides by the calling rules which of the calls that this process has just claimed may be
// dialled. One transaction decides about all calls of a take. It locks, in this order: the rule
// sets of the accounts, the calls, and one row of `called_numbers` for each account and number,
// sorted. Two calls to a number are therefore decided one after the other, on whatever nodes, and
// the second one sees the attempt of the first. The end of a call also locks the call before the
// number (`src/store/outbox/append-statement.ts`), so the two cannot deadlock.
//
// A call is claimed before the transaction begins, and changes are stored before they look for
// calls that are claimed. So no change is missed: either the decision sees it, or it finds the
// call.
//
// The decision about a call is one of these:
// - permitted: its attempt is in `called_numbers`, with its id. If the answer is lost and the take
// is
//   repeated, the call's own attempt doesn't count against it.
// - wait: the call is given back to the queue with `not_before`, without its slot on the trunk.
// - fail: the call still belongs to this process, which ends it.

import type { Pool, PoolClient } from 'pg';
import type { AbandonmentRule } from '../../calls/abandonment/abandonment.ts';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type { CallId } from '../../calls/contract/identity.ts';
import type { Clock } from '../../calls/ports.ts';
import type { RuleRefusal } from '../../calls/rules/refusal.ts';
import type { Ruling } from '../../calls/rules/ruling.ts';
import { calledNumberOf, suppressedAddressOf } from '../../calls/rules/suppression.ts';
import type { Rules } from '../../rules/compile-rules.ts';
import { type CallFacts, type Decision, decide, hoursEndAt } from '../../rules/decide.ts';
import { fewRows } from '../few-rows.ts';
import { calleeNumber } from '../schema/calls.ts';
import { retryConflicts } from '../sql-errors.ts';
import { inTransaction } from '../transaction.ts';
import {
  beginCampaigns,
  type CampaignGate,
  holdRuleOf,
  keyOf,
  lockCampaigns,
  storeGates,
} from './campaign-gates.ts';
import { type CurrentRules, keepRules, readRules } from './current-rules.ts';

export type Permits = {
  /**
   * Decides about each call. A call that is missing from the map no longer belongs to this process,
   * or waits.
   */
  decide(calls: readonly AcceptedCall[]): Promise<ReadonlyMap<CallId, Permit | RuleRefusal>>;
};

/**
 * The call may be dialled until `hoursEndAt`, if there are hours. `ruling` is undefined if the
 * account has no rule set that applies.
 */
export type Permit = { readonly ruling?: Ruling; readonly hoursEndAt?: Date };

export type PermitOptions = {
  readonly clock: Clock;
  /** An account's calls that may wait for a rule. Further ones end at once. */
  readonly maxHeldPerAccount: number;
};

/** No rule counts more attempts, or older ones (`src/rules/rule-set.ts`). */
const maxAttempts = 100;
const maxAttemptAgeDays = 366;
/** Counting the calls that wait takes 10 ms if they are many, and the limit need not be exact. */
const countHeldEveryMs = 10_000;

/**
 * Locks the calls ($1, of the accounts $2, to the addresses $3) that still belong to this process
 * ($4), then the rows of their numbers. A row that is missing is made from the calls that the
 * account has already sent to the number. `on conflict do update` waits for other transactions and
 * returns the newest version of each row, which the statement's snapshot may not contain.
 */
const lockStatement = {
  name: 'lock calls and their numbers',
  text: `
with given as materialized (
  select * from unnest($1::text[], $2::text[], $3::text[]) as g(call_id, account_id, address)
  where ${fewRows('call_id')}
), ours as materialized (
  select g.*, c.ftc_outcome is not null as is_counted from given g join calls c using (call_id)
  where c.owner_id = $4 and c.dial_started_at is not null and c.ended_at is null
  order by call_id for update of c
), wanted as materialized (
  select distinct account_id, address as number from ours where address like '+%'
), missing as materialized (
  select * from wanted w where not exists (
    select from called_numbers k where k.account_id = w.account_id and k.number = w.number)
), history as materialized (
  select m.account_id, m.number, h.* from missing m cross join lateral (
    select array_agg(call_id order by dialed_at) as call_ids,
      array_agg(dialed_at order by dialed_at) as attempted_at, max(answered_at) as answered_at
    from (
      (select call_id, dialed_at, answered_at from call_records r
       where r.account_id = m.account_id and r.number = substr(m.number, 2) and dialed_at is not null
         and accepted_at > $5::timestamptz - interval '${maxAttemptAgeDays} days'
       order by accepted_at desc limit ${maxAttempts})
      union all
      (select call_id, dialed_at, answered_at from calls c
       where c.account_id = m.account_id and ${calleeNumber.text} = substr(m.number, 2)
         and dialed_at is not null and end_published_at is null
       order by accepted_at desc limit ${maxAttempts})
    ) as sent
  ) h
), numbers as (
  insert into called_numbers as known (account_id, number, call_ids, attempted_at, answered_at, used_at)
  select account_id, number, coalesce(call_ids, '{}'), coalesce(attempted_at, '{}'), answered_at, $5
  from wanted left join history using (account_id, number)
  order by account_id, number
  on conflict (account_id, number) do update set used_at = excluded.used_at
  returning account_id, number, call_ids, attempted_at, answered_at, abandoned_at
)
select o.call_id, o.is_counted, n.call_ids, n.attempted_at, n.answered_at, n.abandoned_at,
  s.address is not null as is_suppressed, s.until as suppressed_until
from ours o
left join numbers n on n.account_id = o.account_id and n.number = o.address
left join suppressions s on s.account_id = o.account_id and s.address = o.address
  and (s.until is null or s.until > $5)`,
} as const;

/** Stores the decisions ($1 to $5), and the attempts ($6 to $8) of the numbers ($9, $10). */
const decideStatement = {
  name: 'store decisions about calls',
  text: `
with decided as materialized (
  select * from unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::timestamptz[], $11::boolean[])
    as d(call_id, rule_set, rule_set_version, waits_for, not_before, is_measured)
  where ${fewRows('call_id')}
), freed as (
  delete from trunk_slots s using decided d where d.not_before is not null and s.leg_id = d.call_id
), moved as (
  update calls c set rule_set = d.rule_set, rule_set_version = d.rule_set_version,
    waits_for = d.waits_for, not_before = d.not_before,
    ftc_outcome = case when d.is_measured then coalesce(c.ftc_outcome, 'undecided') end,
    ofcom_outcome = case when d.is_measured then coalesce(c.ofcom_outcome, 'undecided') end,
    dial_started_at = case when d.not_before is null then c.dial_started_at end,
    owner_id = case when d.not_before is null then c.owner_id end,
    state = case when d.not_before is null then c.state else 'queued' end,
    status = case when d.not_before is null then c.status else 'queued' end
  from decided d where c.call_id = d.call_id
), attempts as materialized (
  select place, array_agg(call_id order by at, call_id) as call_ids,
    array_agg(at order by at, call_id) as attempted_at
  from unnest($6::integer[], $7::text[], $8::timestamptz[]) as a(place, call_id, at) group by place
)
update called_numbers n set call_ids = coalesce(a.call_ids, '{}'), attempted_at = coalesce(a.attempted_at, '{}')
from unnest($9::text[], $10::text[]) with ordinality as g(account_id, number, place)
left join attempts a using (place)
where ${fewRows('g.number')} and n.account_id = g.account_id and n.number = g.number`,
} as const;

const countHeldStatement = `
select count(*)::integer as count from calls where account_id = $1 and not_before is not null`;

type LockedRow = {
  readonly call_id: CallId;
  /** Whether an earlier decision counted the call in its campaign's figures. */
  readonly is_counted: boolean;
  readonly call_ids: readonly string[] | null;
  readonly attempted_at: readonly Date[] | null;
  readonly answered_at: Date | null;
  readonly abandoned_at: Date | null;
  readonly is_suppressed: boolean;
  readonly suppressed_until: Date | null;
};

type LockedCall = { readonly call: AcceptedCall; readonly row: LockedRow };

type Attempt = { readonly callId: string; readonly at: Date };

/** A row of `called_numbers`. The attempts change while the calls of the take are decided. */
type CalledNumber = { readonly accountId: string; readonly number: string; attempts: Attempt[] };

type Decided = {
  readonly call: AcceptedCall;
  readonly ruleSet: CurrentRules | undefined;
  readonly decision: Decision;
};

export function createPermits(pool: Pool, ownerId: string, options: PermitOptions): Permits {
  const held = new HeldCounts(options);
  const decideAll = async (client: PoolClient, calls: readonly AcceptedCall[]) => {
    const now = options.clock.now();
    const ruled = calls.map((call) => ({ ...call, ...namedRules(call) }));
    await keepRules(client, ruled);
    const rulesOf = await readRules(client, ruled, { deleted: 'apply' });
    const { rows } = await client.query<LockedRow>({
      ...lockStatement,
      values: [...columnsOf(calls), ownerId, now],
    });
    const ours = lockedCalls(ruled, rows);
    const gates = await lockGates(client, ours, { rulesOf, now });
    const numbers = new Map<string, CalledNumber>();
    const decided: Decided[] = [];
    for (const { call, row } of ours) {
      const ruleSet = rulesOf(call);
      const number = numberOf(call, row, numbers);
      const facts = { ...factsOf(call, row, number), ...gateOf(call, row, gates, ruleSet, now) };
      const wanted = decide(ruleSet?.rules, facts, now);
      const decision = await held.limited(client, call, wanted);
      if (decision.kind === 'permitted') number?.attempts.push({ callId: call.callId, at: now });
      decided.push({ call, ruleSet, decision });
    }
    if (decided.length > 0) await store(client, decided, [...numbers.values()], now);
    await storeGates(client, gates.values());
    return decided;
  };
  return {
    async decide(calls) {
      const decided = await retryConflicts(() =>
        inTransaction(pool, (client) => decideAll(client, calls)),
      );
      const verdicts = new Map<CallId, Permit | RuleRefusal>();
      const now = options.clock.now();
      for (const { call, ruleSet, decision } of decided) {
        if (decision.kind === 'permitted') verdicts.set(call.callId, permitOf(call, ruleSet, now));
        if (decision.kind === 'fail') verdicts.set(call.callId, refusalOf(decision));
      }
      return verdicts;
    },
  };
}

/** Returns the calls that still belong to this process. */
function lockedCalls(
  calls: readonly AcceptedCall[],
  rows: readonly LockedRow[],
): readonly LockedCall[] {
  const locked = new Map(rows.map((row) => [row.call_id, row]));
  return calls.flatMap((call) => {
    const row = locked.get(call.callId);
    return row === undefined ? [] : [{ call, row }];
  });
}

function permitOf({ request }: AcceptedCall, ruleSet: CurrentRules | undefined, now: Date): Permit {
  if (ruleSet === undefined) return {};
  const { name, version, rules } = ruleSet;
  const { target, timeZone } = request;
  const abandonment = abandonmentRule(rules, request);
  const number = calledNumberOf(target);
  const endAt = hoursEndAt(
    rules,
    {
      ...(number === undefined ? {} : { number }),
      ...(timeZone === undefined ? {} : { timeZone }),
    },
    now,
  );
  return {
    ...(endAt === undefined ? {} : { hoursEndAt: endAt }),
    ruling: {
      ...{ ruleSet: name, version },
      ...(abandonment === undefined ? {} : { abandonment }),
    },
  };
}

/** @returns undefined if the call doesn't count in the figures of a campaign */
function abandonmentRule(
  { abandoned, connected, voice }: Rules,
  { campaign, machineDetection }: AcceptedCall['request'],
): AbandonmentRule | undefined {
  if (abandoned === undefined || campaign === undefined || machineDetection === 'disabled') {
    return undefined;
  }
  return { formula: abandoned.formula, connected: voice === 'recorded' ? 'message' : connected };
}

type FindRules = (call: AcceptedCall) => CurrentRules | undefined;

/** Begins the campaigns of the calls that count, and locks those that may be held. */
async function lockGates(
  client: PoolClient,
  calls: readonly LockedCall[],
  { rulesOf, now }: { readonly rulesOf: FindRules; readonly now: Date },
): Promise<ReadonlyMap<string, CampaignGate>> {
  const measured = calls.flatMap(({ call }) => {
    const ruleSet = rulesOf(call);
    const { accountId, request } = call;
    const { campaign } = request;
    if (ruleSet === undefined || campaign === undefined) return [];
    if (abandonmentRule(ruleSet.rules, request) === undefined) return [];
    return [{ accountId, campaign, ruleSet: ruleSet.name, hold: holdRuleOf(ruleSet.rules) }];
  });
  await beginCampaigns(client, measured);
  return await lockCampaigns(
    client,
    measured.filter(({ hold }) => hold !== undefined),
    now,
  );
}

/** Returns the fact that a campaign's gate adds. Asking the gate counts the call as in flight. */
function gateOf(
  { callId, accountId, request: { campaign } }: AcceptedCall,
  { is_counted: isCounted }: LockedRow,
  gates: ReadonlyMap<string, CampaignGate>,
  ruleSet: CurrentRules | undefined,
  now: Date,
): Pick<CallFacts, 'campaignHeldUntil'> {
  const gate = campaign === undefined ? undefined : gates.get(keyOf({ accountId, campaign }));
  const rule = ruleSet === undefined ? undefined : holdRuleOf(ruleSet.rules);
  // A call that an unanswered decision has permitted is in flight already.
  if (gate === undefined || rule === undefined || isCounted) return {};
  return { campaignHeldUntil: () => gate.judge(callId, rule, now) };
}

function refusalOf({ rule, notBefore }: Extract<Decision, { kind: 'fail' }>): RuleRefusal {
  return { rule, ...(notBefore === undefined ? {} : { notBefore }) };
}

function namedRules({ request: { rules } }: AcceptedCall): { readonly rules?: string } {
  return rules === undefined ? {} : { rules };
}

/** Returns the calls as the arrays of `lockStatement`. */
function columnsOf(calls: readonly AcceptedCall[]): readonly (readonly (string | null)[])[] {
  return [
    calls.map(({ callId }) => callId),
    calls.map(({ accountId }) => accountId),
    calls.map(({ request: { target } }) => suppressedAddressOf(target) ?? null),
  ];
}

/**
 * Finds the number of a call among those of the take, and leaves out the call's own attempt from an
 * earlier, unanswered decision.
 *
 * @returns undefined if the target isn't a number
 */
function numberOf(
  { callId, accountId, request }: AcceptedCall,
  { call_ids: callIds, attempted_at: attemptedAt }: LockedRow,
  numbers: Map<string, CalledNumber>,
): CalledNumber | undefined {
  const number = suppressedAddressOf(request.target);
  if (number === undefined || callIds === null) return undefined;
  const key = `${accountId} ${number}`;
  const known = numbers.get(key) ?? {
    accountId,
    number,
    attempts: attemptsOf(callIds, attemptedAt),
  };
  numbers.set(key, known);
  known.attempts = known.attempts.filter((attempt) => attempt.callId !== callId);
  return known;
}

function attemptsOf(callIds: readonly string[], times: readonly Date[] | null): Attempt[] {
  return callIds.flatMap((callId, index) => {
    const at = times?.[index];
    return at === undefined ? [] : [{ callId, at }];
  });
}

function factsOf(
  { request: { timeZone } }: AcceptedCall,
  row: LockedRow,
  number: CalledNumber | undefined,
): CallFacts {
  const { answered_at: answeredAt, abandoned_at: abandonedAt, suppressed_until: until } = row;
  return {
    ...(number === undefined ? {} : { number: number.number.slice(1) }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(row.is_suppressed ? { suppression: until === null ? {} : { until } } : {}),
    attemptedAt: number?.attempts.map(({ at }) => at) ?? [],
    ...(answeredAt === null ? {} : { answeredAt }),
    ...(abandonedAt === null ? {} : { abandonedAt }),
  };
}

async function store(
  client: PoolClient,
  decided: readonly Decided[],
  numbers: readonly CalledNumber[],
  now: Date,
): Promise<void> {
  const oldest = now.getTime() - maxAttemptAgeDays * 86_400_000;
  const attempts = numbers.flatMap((number, index) =>
    number.attempts
      .filter(({ at }) => at.getTime() > oldest)
      .slice(-maxAttempts)
      .map((attempt) => ({ ...attempt, place: index + 1 })),
  );
  const waits = decided.map(({ decision }) => (decision.kind === 'wait' ? decision : undefined));
  await client.query({
    ...decideStatement,
    values: [
      decided.map(({ call }) => call.callId),
      decided.map(({ ruleSet }) => ruleSet?.name ?? null),
      decided.map(({ ruleSet }) => ruleSet?.version ?? null),
      waits.map((wait) => wait?.rule ?? null),
      decided.map(({ call, decision }) => notBeforeOf(call, decision)),
      attempts.map(({ place }) => place),
      attempts.map(({ callId }) => callId),
      attempts.map(({ at }) => at),
      numbers.map(({ accountId }) => accountId),
      numbers.map(({ number }) => number),
      decided.map(({ call: { request }, ruleSet, decision }) => {
        const isPermitted = decision.kind === 'permitted' && ruleSet !== undefined;
        return isPermitted && abandonmentRule(ruleSet.rules, request) !== undefined;
      }),
    ],
  });
}

/** A call of a held campaign waits until a review releases it (`campaign-review.ts`). */
function notBeforeOf({ acceptedAt, request }: AcceptedCall, decision: Decision): Date | null {
  if (decision.kind !== 'wait') return null;
  if (decision.rule !== 'abandoned-rate') return decision.until;
  return new Date(acceptedAt.getTime() + request.queueTimeoutMs);
}

/** How many calls of each account wait for a rule, as far as this process knows. */
class HeldCounts {
  readonly #options: PermitOptions;
  /** At most as many entries as accounts that have had a waiting call. */
  readonly #counts = new Map<string, { readonly at: number; count: number }>();

  constructor(options: PermitOptions) {
    this.#options = options;
  }

  /** Turns `wait` into `fail` if too many calls of the account wait already. */
  async limited(
    client: PoolClient,
    { accountId }: AcceptedCall,
    decision: Decision,
  ): Promise<Decision> {
    if (decision.kind !== 'wait' || (await this.#add(client, accountId))) return decision;
    return { kind: 'fail', rule: decision.rule, notBefore: decision.until };
  }

  /** @returns false if the account has too many already */
  async #add(client: PoolClient, accountId: string): Promise<boolean> {
    const { maxHeldPerAccount } = this.#options;
    const now = performance.now();
    let known = this.#counts.get(accountId);
    if (known === undefined || now - known.at > countHeldEveryMs) {
      const { rows } = await client.query<{ count: number }>(countHeldStatement, [accountId]);
      known = { at: now, count: rows[0]?.count ?? 0 };
      this.#counts.set(accountId, known);
    }
    if (known.count >= maxHeldPerAccount) return false;
    known.count += 1;
    return true;
  }
}
