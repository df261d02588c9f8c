// Stores accounts' rule sets. Each change adds a version, and no version is ever deleted, so that
// the record of a call can always show the rules under which the call was taken. Deleting a rule
// set marks its last version.

import type { PoolClient } from 'pg';
import type { Clock } from '../../calls/ports.ts';
import type { RuleSetDocument } from '../../rules/rule-set.ts';
import type { Database } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import { rulesLock } from './current-rules.ts';
import { becomeRuled } from './ruled-accounts.ts';

export type RuleSet = {
  readonly name: string;
  /** Counts 1, 2, … for each name, also across deletions. */
  readonly version: number;
  /** When this version was stored. */
  readonly changedAt: Date;
  readonly changedByApp: string;
  readonly document: RuleSetDocument;
};

export type PutRuleSet =
  | { readonly kind: 'stored'; readonly ruleSet: RuleSet }
  /** The account has as many rule sets as it may have. */
  | { readonly kind: 'full' };

export type RuleSetStore = {
  /** Lists the account's rule sets, sorted by name. */
  list(accountId: string): Promise<readonly RuleSet[]>;
  /**
   * @param version any version, also of a deleted rule set. Default: the current one
   * @returns undefined if there's no such rule set
   */
  find(accountId: string, name: string, version?: number): Promise<RuleSet | undefined>;
  /**
   * Stores a new version, unless the current one has the same document. Calls that are taken after
   * the promise resolves are checked against it, on every node.
   */
  put(
    accountId: string,
    name: string,
    change: { readonly document: RuleSetDocument; readonly appId: string },
  ): Promise<PutRuleSet>;
  /** @returns false if there's no such rule set */
  remove(accountId: string, name: string): Promise<boolean>;
};

/** A take reads the sets that its calls name, and a console shows all of them on one page. */
export const maxRuleSets = 100;

const columns =
  'name, version, changed_at as "changedAt", changed_by_app as "changedByApp", document';

export function createRuleSetStore({
  database: { pool, reads },
  clock,
}: {
  readonly database: Pick<Database, 'pool' | 'reads'>;
  readonly clock: Clock;
}): RuleSetStore {
  return {
    async list(accountId) {
      const { rows } = await reads(accountId).query<RuleSet>(
        `select ${columns} from rule_sets where account_id = $1 and is_current and deleted_at is null
         order by name collate "C"`,
        [accountId],
      );
      return rows;
    },
    async find(accountId, name, version) {
      const { rows } = await reads(accountId).query<RuleSet>(
        `select ${columns} from rule_sets where account_id = $1 and name = $2
         and case when $3::integer is null then is_current and deleted_at is null else version = $3 end`,
        [accountId, name, version],
      );
      return rows[0];
    },
    put: (accountId, name, { document, appId }) =>
      changing(pool, accountId, async (client) => {
        const values = [accountId, name, JSON.stringify(document)];
        const { rows: same } = await client.query<RuleSet>(
          `select ${columns} from rule_sets where account_id = $1 and name = $2
           and is_current and deleted_at is null and document::jsonb = $3::jsonb`,
          values,
        );
        if (same[0] !== undefined) return { kind: 'stored', ruleSet: same[0] };
        const { rows: others } = await client.query<{ count: number }>(
          `select count(*)::integer as count from rule_sets
           where account_id = $1 and name <> $2 and is_current and deleted_at is null`,
          [accountId, name],
        );
        if ((others[0]?.count ?? 0) >= maxRuleSets) return { kind: 'full' };
        const { rows } = await client.query<RuleSet>(
          `with earlier as (
             update rule_sets set is_current = false where account_id = $1 and name = $2 and is_current
             returning version
           )
           insert into rule_sets (account_id, name, version, document, changed_at, changed_by_app, is_current)
           values ($1, $2, coalesce((select version from earlier), 0) + 1, $3, $4, $5, true)
           returning ${columns}`,
          [...values, clock.now(), appId],
        );
        const [ruleSet] = rows;
        if (ruleSet === undefined) throw new Error('a rule set was not stored');
        return { kind: 'stored', ruleSet };
      }),
    remove: (accountId, name) =>
      changing(pool, accountId, async (client) => {
        const { rowCount } = await client.query(
          `update rule_sets set deleted_at = $3
           where account_id = $1 and name = $2 and is_current and deleted_at is null`,
          [accountId, name, clock.now()],
        );
        return rowCount === 1;
      }),
  };
}

/** Runs a change while no take of the account's calls is being decided. */
function changing<Result>(
  pool: Database['pool'],
  accountId: string,
  change: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  return inTransaction(pool, async (client) => {
    await becomeRuled(client, accountId);
    await client.query('select pg_advisory_xact_lock($1, hashtext($2))', [rulesLock, accountId]);
    return await change(client);
  });
}
