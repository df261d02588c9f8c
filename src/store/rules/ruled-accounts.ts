// Accounts with calling rules. An account is ruled from its first rule set or suppression on, and
// stays ruled. `take_calls` says of each call whether its account is ruled, from a list in the row
// of `call_takes` that it locks anyway, so that other accounts' calls cost nothing more.

import type { PoolClient } from 'pg';

/** The letters `ruled` as a number: the advisory lock under which the list of accounts changes. */
export const ruledAccountsLock = '491596309860';

/**
 * Makes an account ruled, as part of the transaction that stores its rule set or its suppression.
 * Waits for takes under way. Every call that is taken after the commit is checked. Run this before
 * the transaction locks any row, because it waits for locks itself.
 */
export async function becomeRuled(
  client: Pick<PoolClient, 'query'>,
  accountId: string,
): Promise<void> {
  const known = await client.query('select from ruled_accounts where account_id = $1', [accountId]);
  if (known.rowCount === 1) return;
  // No process adds a row to `call_takes` until the commit, because its copy would be out of date.
  await client.query(`select pg_advisory_xact_lock(${ruledAccountsLock})`);
  const added = await client.query(
    'insert into ruled_accounts (account_id) values ($1) on conflict do nothing',
    [accountId],
  );
  if (added.rowCount === 0) return;
  await client.query('update call_takes set ruled_accounts = array_append(ruled_accounts, $1)', [
    accountId,
  ]);
}
