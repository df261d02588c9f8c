// Says what the calling rules would decide about a call now, for `POST …/dialout?check=true`. Reads
// without locks, and changes nothing.

import type { DialoutRequest, DialTarget } from '../../calls/call-types.ts';
import { calledNumberOf, suppressedAddressOf } from '../../calls/rules/suppression.ts';
import { type CallFacts, callZones, type Decision, decide } from '../../rules/decide.ts';
import type { Queries } from '../queries.ts';
import { calleeNumber } from '../schema/calls.ts';
import { sql } from '../sql.ts';
import {
  abandonmentRule,
  type CountedRequest,
  holdRuleOf,
  readCampaign,
} from './campaign-gates.ts';
import { openAbandonment } from './campaign-outcomes.ts';
import { type CurrentRules, readRules } from './current-rules.ts';
import { inForce } from './suppressions.ts';

/** No rule counts more attempts, or older ones (`src/rules/rule-set.ts`). */
const maxAttempts = 100;
const maxAttemptAgeDays = 366;

export type CallToCheck = {
  readonly accountId: string;
  readonly request: Pick<DialoutRequest, 'rules' | 'target' | 'timeZone'> & Partial<CountedRequest>;
};

export type CallCheck = {
  readonly decision: Decision;
  readonly ruleSet: Pick<CurrentRules, 'name' | 'version'> | undefined;
  /** The time zones whose hours count. Empty if they aren't known, or if the call has no number. */
  readonly timeZones: readonly string[];
};

export async function checkCall(
  queries: Queries,
  { accountId, request }: CallToCheck,
  now: Date,
): Promise<CallCheck> {
  const { rules, timeZone, target } = request;
  const call = { accountId, ...(rules === undefined ? {} : { rules }) };
  const ruleSet = (await readRules(queries, [call], { deleted: 'omit' }))(call);
  const number = calledNumberOf(target);
  const suppression = await readSuppression(queries, accountId, target);
  const facts = {
    ...(await readContacts(queries, accountId, number)),
    ...(suppression === undefined ? {} : { suppression }),
    ...(number === undefined ? {} : { number }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(await readHold(queries, { accountId, request }, ruleSet, now)),
  };
  const hours = ruleSet?.rules.hours;
  const zones = number === undefined ? undefined : callZones(hours, number, timeZone);
  return { decision: decide(ruleSet?.rules, facts, now), ruleSet, timeZones: zones ?? [] };
}

/** Returns the fact that the hold of the call's campaign adds. */
async function readHold(
  queries: Queries,
  { accountId, request: { campaign, machineDetection = 'detect' } }: CallToCheck,
  ruleSet: CurrentRules | undefined,
  now: Date,
): Promise<Pick<CallFacts, 'campaignHeldUntil'>> {
  if (campaign === undefined || ruleSet === undefined) return {};
  const { rules } = ruleSet;
  const hold = holdRuleOf(rules);
  const counts = abandonmentRule(rules, { campaign, machineDetection }) !== undefined;
  if (hold === undefined || !counts) return {};
  const gate = await readCampaign(queries, { accountId, campaign }, now);
  return gate === undefined ? {} : { campaignHeldUntil: () => gate.judge('', hold, now) };
}

/** Returns what the account has sent to a number, whether or not a rule set has checked it yet. */
async function readContacts(
  queries: Queries,
  accountId: string,
  number: string | undefined,
): Promise<Pick<CallFacts, 'attemptedAt' | 'answeredAt' | 'abandonedAt'>> {
  if (number === undefined) return { attemptedAt: [] };
  const { rows } = await queries.query<ContactsRow>(
    `select attempted_at, answered_at, greatest(abandoned_at, (
       ${openAbandonment('$1', '$3')})) as abandoned_at
     from called_numbers where account_id = $1 and number = $2`,
    [accountId, `+${number}`, number],
  );
  const [row = await readHistory(queries, accountId, number)] = rows;
  const { attempted_at: attemptedAt, answered_at: answeredAt, abandoned_at: abandonedAt } = row;
  return {
    attemptedAt: attemptedAt ?? [],
    ...(answeredAt === null ? {} : { answeredAt }),
    ...(abandonedAt === null ? {} : { abandonedAt }),
  };
}

type ContactsRow = {
  readonly attempted_at: readonly Date[] | null;
  readonly answered_at: Date | null;
  readonly abandoned_at: Date | null;
};

const noContacts: ContactsRow = { attempted_at: null, answered_at: null, abandoned_at: null };

/**
 * Reads the calls to a number that no rule set has checked yet: settled ones from their records,
 * the others from `calls`. `permits.ts` makes the number's row from the same calls when it takes
 * the next one.
 */
async function readHistory(
  queries: Queries,
  accountId: string,
  number: string,
): Promise<ContactsRow> {
  const columns = sql`dialed_at, answered_at,
    case when 'abandoned' in (ftc_outcome, ofcom_outcome) then ended_at end as abandoned_at`;
  const { rows } = await queries.query<ContactsRow>(
    sql`select array_agg(dialed_at order by dialed_at) as attempted_at,
        max(answered_at) as answered_at, max(abandoned_at) as abandoned_at
      from (
        (select ${columns} from call_records
          where account_id = ${accountId} and number = ${number} and dialed_at is not null
            and accepted_at > clock_timestamp() - make_interval(days => ${maxAttemptAgeDays})
          order by accepted_at desc limit ${maxAttempts})
        union all
        (select ${columns} from calls
          where account_id = ${accountId} and ${calleeNumber} = ${number}
            and dialed_at is not null and end_published_at is null
          order by accepted_at desc limit ${maxAttempts})
      ) as sent`,
  );
  return rows[0] ?? noContacts;
}

async function readSuppression(
  queries: Queries,
  accountId: string,
  target: DialTarget,
): Promise<CallFacts['suppression']> {
  const address = suppressedAddressOf(target);
  if (address === undefined) return undefined;
  const { rows } = await queries.query<{ until: Date | null }>(
    sql`select until from suppressions
      where account_id = ${accountId} and address = ${address} and ${inForce}`,
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  return row.until === null ? {} : { until: row.until };
}
