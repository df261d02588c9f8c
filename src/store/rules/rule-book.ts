// The rules that apply to dial-out requests, kept in memory for a few seconds. A request is checked
// for what it says (`src/rules/request-checks.ts`); the call itself is checked against the database
// when it is taken.

import { createLookupCache } from '../../lib/lookup-cache.ts';
import { defaultRuleSet } from '../../rules/rule-set.ts';
import type { Queries } from '../queries.ts';
import { type CurrentRules, type RuledCall, readRules } from './current-rules.ts';

export type RuleBook = {
  /**
   * Finds the rules that apply to a request.
   *
   * @param name the rule set that the request names. Undefined if it names none
   * @returns undefined if no rules apply; `unknown` if the account has no rule set of this name
   */
  find(accountId: string, name: string | undefined): Promise<CurrentRules | undefined | 'unknown'>;
  /** Forgets what was read, because some account's rules have changed. */
  changed(): void;
};

/** Other nodes' hints can get lost, so nothing is trusted for longer than this. */
const ttlMs = 5_000;
const maxEntries = 1_000;

export function createRuleBook(pool: Queries, nowMs: () => number): RuleBook {
  // One statement for all accounts: calls of accounts without rules cause no statement of their
  // own.
  const ruledAccounts = createLookupCache(
    () => readRuledAccounts(pool),
    { ttlMs, maxEntries: 1 },
    nowMs,
  );
  const current = createLookupCache(
    async (key) => {
      const [accountId = '', rules = ''] = key.split(' ');
      return await readOne(pool, { accountId, rules });
    },
    { ttlMs, maxEntries },
    nowMs,
  );
  return {
    async find(accountId, name) {
      if (name === undefined) {
        const isRuled = (await ruledAccounts.memo('all')).has(accountId);
        return isRuled ? await current.memo(`${accountId} ${defaultRuleSet}`) : undefined;
      }
      const found = await current.memo(`${accountId} ${name}`);
      if (found !== undefined) return found;
      // Another node may have stored it a moment ago.
      return (await readOne(pool, { accountId, rules: name })) ?? 'unknown';
    },
    changed() {
      ruledAccounts.clear();
      current.clear();
    },
  };
}

async function readOne(pool: Queries, call: RuledCall): Promise<CurrentRules | undefined> {
  return (await readRules(pool, [call], { deleted: 'omit' }))(call);
}

async function readRuledAccounts(pool: Queries): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ account_id: string }>(
    'select account_id from ruled_accounts',
  );
  return new Set(rows.map((row) => row.account_id));
}
