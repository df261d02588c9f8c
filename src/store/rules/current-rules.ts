// Reads the rule sets that are in force, for the check of calls that are taken and of requests.

import { LRUCache } from 'lru-cache';
import { compileRules, type Rules } from '../../rules/compile-rules.ts';
import { defaultRuleSet, type RuleSetDocument } from '../../rules/rule-set.ts';
import type { Queries } from '../queries.ts';

/**
 * Class of the advisory locks, one for each account, under which its rule sets change. The letters
 * `rule` as a number.
 */
export const rulesLock = 1_920_298_085;

/** The account of a call, and the rule set that its request names, if any. */
export type RuledCall = { readonly accountId: string; readonly rules?: string };

export type CurrentRules = {
  readonly name: string;
  readonly version: number;
  readonly rules: Rules;
};

/** Compiled documents by their text. */
const compiled = new LRUCache<string, Rules>({ max: 500 });

/**
 * Returns a function that finds the rule set that applies to each of the calls: the one that its
 * request names, or else the account's `default`. The function returns undefined if no rule set
 * applies.
 *
 * @param deleted what a deleted rule set means to a request that names it. `apply`, for calls that
 * were accepted before: its last version still applies, because a deletion must not free a waiting
 * call from all rules. `omit`, for new requests: there is no such rule set
 */
export async function readRules(
  sql: Queries,
  calls: readonly RuledCall[],
  { deleted }: { readonly deleted: 'apply' | 'omit' },
): Promise<(call: RuledCall) => CurrentRules | undefined> {
  const keys = new Set(calls.map(keyOf));
  const { rows } = await sql.query<RuleRow>({
    name: 'read rules',
    text: `select account_id, name, version, document::text, deleted_at is not null as is_deleted
      from unnest($1::text[], $2::text[]) wanted (account_id, name)
      join rule_sets using (account_id, name) where is_current`,
    values: [[...keys].map((key) => key.split(' ')[0]), [...keys].map((key) => key.split(' ')[1])],
  });
  const found = new Map(rows.map((row) => [`${row.account_id} ${row.name}`, row]));
  return (call) => {
    const row = found.get(keyOf(call));
    if (row === undefined) return undefined;
    const isOmitted = row.is_deleted && (deleted === 'omit' || call.rules === undefined);
    if (isOmitted) return undefined;
    return { name: row.name, version: row.version, rules: rulesIn(row.document) };
  };
}

type RuleRow = {
  readonly account_id: string;
  readonly name: string;
  readonly version: number;
  readonly document: string;
  readonly is_deleted: boolean;
};

/** Compiles a document, or finds it compiled. */
export function rulesIn(document: string): Rules {
  const known = compiled.get(document);
  if (known !== undefined) return known;
  const rules = compileRules(JSON.parse(document) as RuleSetDocument);
  compiled.set(document, rules);
  return rules;
}

/** Neither ids nor names contain a blank. */
function keyOf({ accountId, rules = defaultRuleSet }: RuledCall): string {
  return `${accountId} ${rules}`;
}
