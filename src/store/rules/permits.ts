// Decides by the calling rules which of the calls that this process has just claimed may be
// dialled. One transaction decides about all calls of a take. `lock_calls`
// (`../schema/lock-calls.ts`) locks the rule sets of the accounts, the calls, and then one row of
// `called_numbers` for each account and number, sorted. Two calls to a number are therefore decided
// one after the other, on whatever nodes, and the second one sees the attempt of the first. The end
// of a call also locks the call before the number (`src/store/outbox/append-statement.ts`), so the
// two cannot deadlock.
//
// A call is claimed before the transaction begins, and changes are stored before they look for
// calls that are claimed. So no change is missed: either the decision sees it, or it finds the
// call.
//
// The decision about a call is one of these:
// - permitted: its attempt is in `called_numbers`, with its id. If the answer is lost and the take
//   is repeated, the call's own attempt doesn't count against it. The step that stores the INVITE
//   also dates the attempt by it.
// - wait: the call is given back to the queue with `not_before`, without its slot on the trunk.
// - fail: the call still belongs to this process, which ends it.

import type { Pool, PoolClient } from 'pg';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type { CallId } from '../../calls/contract/identity.ts';
import type { Clock } from '../../calls/ports.ts';
import type { RuleRefusal } from '../../calls/rules/refusal.ts';
import type { Ruling } from '../../calls/rules/ruling.ts';
import { calledNumberOf, suppressedAddressOf } from '../../calls/rules/suppression.ts';
import { type CallFacts, type Decision, decide, hoursEndAt } from '../../rules/decide.ts';
import { defaultRuleSet } from '../../rules/rule-set.ts';
import { fewRows } from '../few-rows.ts';
import { jsonRows, storableJson } from '../json-rows.ts';
import { maxAttemptAgeDays, maxAttempts } from '../schema/lock-calls.ts';
import { retryConflicts } from '../sql-errors.ts';
import { inTransaction } from '../transaction.ts';
import {
  abandonmentRule,
  beginCampaigns,
  type CampaignGate,
  holdRuleOf,
  keyOf,
  lockCampaigns,
  type MeasuredCall,
  storeGates,
} from './campaign-gates.ts';
import { type CurrentRules, rulesIn } from './current-rules.ts';

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

/** Counting the calls that wait takes 10 ms if they are many, and the limit need not be exact. */
const countHeldEveryMs = 10_000;

/** Locks the calls that still belong to this process, and what the rules need to know of them. */
const lockStatement = {
  name: 'lock calls and their numbers',
  text: 'select * from lock_calls($1, $2, $3, $4, $5, $6)',
} as const;

/**
 * Stores the decisions ($1), and the attempts of their numbers ($2) at $3. Without `waits`, none of
 * the calls waits. `used_at` changes once a day, because each change of it writes two indexes.
 */
const decideStatement = (waits: 'waits' | '') => ({
  name: `store decisions about calls ${waits}`,
  text: `
with decided as materialized (
  select * from json_to_recordset($1::json) as d(call_id text, rule_set text, rule_set_version integer,
    is_measured boolean, waits_for text, not_before timestamptz)
  where ${fewRows('call_id')}
), ${waits && waiting}moved as (
  update calls c set rule_set = d.rule_set, rule_set_version = d.rule_set_version, waits_for = null,
    ftc_outcome = case when d.is_measured then coalesce(c.ftc_outcome, 'undecided') end,
    ofcom_outcome = case when d.is_measured then coalesce(c.ofcom_outcome, 'undecided') end
  from decided d where ${waits && 'd.not_before is null and '}c.call_id = d.call_id
)
update called_numbers n set call_ids = g.call_ids, attempted_at = g.attempted_at,
  used_at = case when n.used_at < $3::timestamptz - interval '1 day' then $3 else n.used_at end
from json_to_recordset($2::json) as g(account_id text, number text, call_ids text[],
  attempted_at timestamptz[])
where ${fewRows('g.number')} and n.account_id = g.account_id and n.number = g.number`,
});

/** Gives back the calls that wait, and their slots. */
const waiting = `freed as (
  delete from trunk_slots s using decided d where d.not_before is not null and s.leg_id = d.call_id
), held as (
  update calls c set rule_set = d.rule_set, rule_set_version = d.rule_set_version,
    waits_for = d.waits_for, not_before = d.not_before, ftc_outcome = null, ofcom_outcome = null,
    dial_started_at = null, owner_id = null, state = 'queued', status = 'queued'
  from decided d where d.not_before is not null and c.call_id = d.call_id
), `;

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
  /** The current version of the rule set that applies. Null if the account has no such set. */
  readonly rule_set_version: number | null;
  readonly document: string | null;
  readonly is_deleted: boolean;
};

type LockedCall = {
  readonly call: AcceptedCall;
  readonly row: LockedRow;
  readonly ruleSet: CurrentRules | undefined;
};

/** Retention has deleted the row of a number between two statements, so the check is repeated. */
class NumberDeletedError extends Error {
  /** SQLSTATE `serialization_failure`. */
  readonly code = '40001';

  constructor() {
    super('the row of a number was deleted');
  }
}

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
    const { rows } = await client.query<LockedRow>({
      ...lockStatement,
      values: [ownerId, now, ...columnsOf(calls)],
    });
    const ours = lockedCalls(calls, rows);
    const gates = await lockGates(client, ours, now);
    const numbers = new Map<string, CalledNumber>();
    const decided: Decided[] = [];
    for (const { call, row, ruleSet } of ours) {
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
    return row === undefined ? [] : [{ call, row, ruleSet: ruleSetOf(call, row) }];
  });
}

/** A deleted rule set still applies to calls that name it: a deletion must not free them. */
function ruleSetOf(
  { request: { rules } }: AcceptedCall,
  { rule_set_version: version, document, is_deleted: isDeleted }: LockedRow,
): CurrentRules | undefined {
  if (version === null || document === null || (isDeleted && rules === undefined)) return undefined;
  return { name: rules ?? defaultRuleSet, version, rules: rulesIn(document) };
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

/** Begins the campaigns of the calls that count, and locks those that may be held. */
async function lockGates(
  client: PoolClient,
  calls: readonly LockedCall[],
  now: Date,
): Promise<ReadonlyMap<string, CampaignGate>> {
  const measured = calls.flatMap(({ call: { accountId, request }, ruleSet }) => {
    const { campaign } = request;
    if (ruleSet === undefined || campaign === undefined) return [];
    if (abandonmentRule(ruleSet.rules, request) === undefined) return [];
    return [{ accountId, campaign, ruleSet: ruleSet.name, hold: holdRuleOf(ruleSet.rules) }];
  });
  const held = measured.filter(({ hold }) => hold !== undefined);
  const gates = await lockCampaigns(client, held, now);
  const isNew = (call: MeasuredCall) => gates.get(keyOf(call))?.ruleSet !== call.ruleSet;
  const begun = measured.filter(isNew);
  if (begun.length === 0) return gates;
  await beginCampaigns(client, begun);
  return await lockCampaigns(client, held, now);
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

/** Returns the calls as the arrays of `lockStatement`. */
function columnsOf(calls: readonly AcceptedCall[]): readonly (readonly (string | null)[])[] {
  return [
    calls.map(({ callId }) => callId),
    calls.map(({ accountId }) => accountId),
    calls.map(({ request: { target } }) => suppressedAddressOf(target) ?? null),
    calls.map(({ request: { rules } }) => rules ?? defaultRuleSet),
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
  if (number?.startsWith('+') !== true) return undefined;
  if (callIds === null) throw new NumberDeletedError();
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
  const decisionRows = decided.map(({ call, ruleSet, decision }) =>
    storableJson({
      call_id: call.callId,
      rule_set: ruleSet?.name,
      rule_set_version: ruleSet?.version,
      is_measured:
        decision.kind === 'permitted' &&
        ruleSet !== undefined &&
        abandonmentRule(ruleSet.rules, call.request) !== undefined,
      waits_for: decision.kind === 'wait' ? decision.rule : undefined,
      not_before: notBeforeOf(call, decision),
    }),
  );
  const numberRows = numbers.map(({ accountId, number, attempts }) => {
    const kept = attempts.filter(({ at }) => at.getTime() > oldest).slice(-maxAttempts);
    return storableJson({
      ...{ account_id: accountId, number },
      call_ids: kept.map(({ callId }) => callId),
      attempted_at: kept.map(({ at }) => at),
    });
  });
  const anyWaits = decided.some(({ decision }) => decision.kind === 'wait');
  await client.query({
    ...decideStatement(anyWaits ? 'waits' : ''),
    values: [jsonRows(decisionRows), jsonRows(numberRows), now],
  });
}

/** A call of a held campaign waits until a review releases it (`campaign-review.ts`). */
function notBeforeOf({ acceptedAt, request }: AcceptedCall, decision: Decision): Date | undefined {
  if (decision.kind !== 'wait') return undefined;
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
