// What `check=true` says about a number that the account has called before.

import { describe, expect, test } from 'vitest';
import { checkCall } from '../../../src/store/rules/call-checks.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

describe.each(databaseKinds)('a check on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  test('counts the attempts and the last answer of the number', async () => {
    const now = new Date();
    const store = createRuleSetStore({ database: rig.database, clock: { now: () => now } });
    const set = (document: object) =>
      store.put('account-1', 'default', { document, appId: 'app-1' });
    const check = async () => {
      const target = { kind: 'tel', number: '12025550100' } as const;
      const call = { accountId: 'account-1', request: { target } };
      return (await checkCall(rig.database.pool, call, now)).decision;
    };
    await rig.database.pool.query(
      `insert into called_numbers (account_id, number, call_ids, attempted_at, answered_at, used_at)
       values ('account-1', '+12025550100', '{call-1}', array[$1::timestamptz], $1, $1)`,
      [new Date(now.getTime() - 3_600_000)],
    );

    await set({ attempts: [{ most: 1, within: '24h' }] });
    expect(await check()).toMatchObject({ kind: 'fail', rule: 'attempts' });
    await set({ attempts: [{ most: 2, within: '24h' }] });
    expect(await check()).toMatchObject({ kind: 'permitted' });
    await set({ rest: { afterAnswered: '7d' } });
    expect(await check()).toMatchObject({ kind: 'fail', rule: 'rest' });
  });
});
