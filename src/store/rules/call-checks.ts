// Says what the calling rules would decide about a call now, for `POST …/dialout?check=true`. Reads
// without locks, and changes nothing.

import type { DialoutRequest } from '../../calls/call-types.ts';
import { calledNumberOf } from '../../calls/rules/suppression.ts';
import { callZones, type Decision, decide } from '../../rules/decide.ts';
import type { Queries } from '../queries.ts';
import { type CurrentRules, readRules } from './current-rules.ts';

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
  sql: Queries,
  { accountId, request }: CallToCheck,
  now: Date,
): Promise<CallCheck> {
  const { rules, timeZone, target } = request;
  const call = { accountId, ...(rules === undefined ? {} : { rules }) };
  const ruleSet = (await readRules(sql, [call], { deleted: 'omit' }))(call);
  const number = calledNumberOf(target);
  const facts = {
    attemptedAt: [],
    ...(number === undefined ? {} : { number }),
    ...(timeZone === undefined ? {} : { timeZone }),
  };
  const hours = ruleSet?.rules.hours;
  const zones = number === undefined ? undefined : callZones(hours, number, timeZone);
  return { decision: decide(ruleSet?.rules, facts, now), ruleSet, timeZones: zones ?? [] };
}
