// Says what the calling rules would decide about a call now, for `POST …/dialout?check=true`. Reads
// without locks, and changes nothing.

import type { DialoutRequest, DialTarget } from '../../calls/call-types.ts';
import { calledNumberOf, suppressedAddressOf } from '../../calls/rules/suppression.ts';
import { type CallFacts, callZones, type Decision, decide } from '../../rules/decide.ts';
import type { Queries } from '../queries.ts';
import { sql } from '../sql.ts';
import { type CurrentRules, readRules } from './current-rules.ts';
import { inForce } from './suppressions.ts';

export type CallToCheck = {
  readonly accountId: string;
  readonly request: Pick<DialoutRequest, 'rules' | 'target' | 'timeZone'>;
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
  };
  const hours = ruleSet?.rules.hours;
  const zones = number === undefined ? undefined : callZones(hours, number, timeZone);
  return { decision: decide(ruleSet?.rules, facts, now), ruleSet, timeZones: zones ?? [] };
}

/**
 * Returns what the account has sent to a number since it was first checked by a rule set. Calls
 * from before that are only counted when the next call is taken.
 */
async function readContacts(
  queries: Queries,
  accountId: string,
  number: string | undefined,
): Promise<Pick<CallFacts, 'attemptedAt' | 'answeredAt' | 'abandonedAt'>> {
  if (number === undefined) return { attemptedAt: [] };
  const { rows } = await queries.query<ContactsRow>(
    sql`select attempted_at, answered_at, abandoned_at from called_numbers
      where account_id = ${accountId} and number = ${`+${number}`}`,
  );
  const [row] = rows;
  if (row === undefined) return { attemptedAt: [] };
  const { attempted_at: attemptedAt, answered_at: answeredAt, abandoned_at: abandonedAt } = row;
  return {
    attemptedAt,
    ...(answeredAt === null ? {} : { answeredAt }),
    ...(abandonedAt === null ? {} : { abandonedAt }),
  };
}

type ContactsRow = {
  readonly attempted_at: readonly Date[];
  readonly answered_at: Date | null;
  readonly abandoned_at: Date | null;
};

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
