// What `check=true` says about a number that the account has called before.

import { describe, expect, test } from 'vitest';
import { checkCall } from '../../../src/store/rules/call-checks.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { acceptedCall, insertCall } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { insertRows } from '../../support/tables.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

describe.each(databaseKinds)('a check on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  const now = new Date();
  const hourAgo = new Date(now.getTime() - 3_600_000);
  const target = { kind: 'tel', number: '12025550100' } as const;

  const set = async (document: object): Promise<void> => {
    const store = createRuleSetStore({ database: rig.database, clock: { now: () => now } });
    await store.put('account-1', 'default', { document, appId: 'app-1' });
  };
  const check = async () => {
    const call = { accountId: 'account-1', request: { target } };
    return (await checkCall(rig.database.pool, call, now)).decision;
  };

  test('counts the attempts and the last answer of the number', async () => {
    await rig.database.pool.query(
      `insert into called_numbers (account_id, number, call_ids, attempted_at, answered_at, used_at)
       values ('account-1', '+12025550100', '{call-1}', array[$1::timestamptz], $1, $1)`,
      [hourAgo],
    );

    await set({ attempts: [{ most: 1, within: '24h' }] });
    expect(await check()).toMatchObject({ kind: 'fail', rule: 'attempts' });
    await set({ attempts: [{ most: 2, within: '24h' }] });
    expect(await check()).toMatchObject({ kind: 'permitted' });
    await set({ rest: { afterAnswered: '7d' } });
    expect(await check()).toMatchObject({ kind: 'fail', rule: 'rest' });
  });

  test('counts calls from before the account had rules, settled or not', async () => {
    const { pool } = rig.database;
    const record = {
      ...{ accountId: 'account-1', appId: 'app-1', botId: 'bot-1', number: target.number },
      ...{ caller: '1', acceptedAt: hourAgo, endedAt: hourAgo, outcome: 'completed' },
    };
    await insertRows(pool, 'call_records', [
      { ...record, callId: 'call-1', dialedAt: hourAgo, answeredAt: hourAgo },
      { ...record, callId: 'call-2', dialedAt: hourAgo, ftcOutcome: 'abandoned' },
      { ...record, callId: 'call-3' },
      { ...record, callId: 'call-4', dialedAt: hourAgo, accountId: 'account-2' },
    ]);
    const open = await insertCall(pool, {
      acceptedAt: hourAgo,
      request: { ...acceptedCall().request, target },
    });
    await pool.query('update calls set dialed_at = $1 where call_id = $2', [hourAgo, open.callId]);

    await set({ attempts: [{ most: 3, within: '24h' }] });
    expect(await check()).toMatchObject({ kind: 'fail', rule: 'attempts' });
    await set({ attempts: [{ most: 4, within: '24h' }] });
    expect(await check()).toMatchObject({ kind: 'permitted' });
    await set({ rest: { afterAnswered: '7d' } });
    expect(await check()).toMatchObject({ kind: 'fail', rule: 'rest' });
    await set({ rest: { afterAbandoned: '72h' } });
    expect(await check()).toMatchObject({ kind: 'fail', rule: 'rest' });
  });
});
