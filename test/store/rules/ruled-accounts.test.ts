// An account becomes ruled: calls that are taken afterwards say so, whichever process takes them.

import { beforeEach, describe, expect, test } from 'vitest';
import type { CallTakes } from '../../../src/calls/dialout-ports.ts';
import { becomeRuled } from '../../../src/store/rules/ruled-accounts.ts';
import { inTransaction } from '../../../src/store/transaction.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';
import { takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

describe.each(databaseKinds)('ruled accounts on %s', (kind) => {
  let rig: LedgerRig;
  let old: CallTakes;
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });
  beforeEach(async () => {
    rig.setNow(new Date());
    old = takesOf(rig.database.pool, 'a/1');
    await accept('ruled');
    expect(await take(old, 1)).toEqual([['ruled', undefined]]);
  });

  // Calls are taken in the order in which they were accepted.
  let age = 0;
  const accept = async (accountId: string): Promise<void> => {
    age += 1;
    const call = acceptedCall({ accountId, acceptedAt: new Date(Date.now() - 1_000 + age) });
    await rig.ledger.accept(call, {});
  };
  /** Takes all waiting calls, and says of each whether its account is ruled. */
  const take = async (takes: CallTakes, takeId: number) => {
    const request = { takeId, isRepeated: false, limits: undefined, wanted: 50, horizonMs: 200 };
    const { grants } = await takes.take({ ...request, source: 'sandbox' });
    return grants.map(({ call }) => [call.accountId, call.isRuled]);
  };
  const rule = (accountId: string): Promise<void> =>
    inTransaction(rig.database.pool, (client) => becomeRuled(client, accountId));

  test('are known to a process that has taken calls before', async () => {
    await rule('ruled');
    await rule('ruled');
    await rule('another');

    await accept('ruled');
    await accept('unruled');
    expect(await take(old, 2)).toEqual([
      ['ruled', true],
      ['unruled', undefined],
    ]);
  });

  test('are known to a process that takes calls for the first time', async () => {
    await rule('ruled');

    await accept('ruled');
    await accept('unruled');
    expect(await take(takesOf(rig.database.pool, 'b/1'), 1)).toEqual([
      ['ruled', true],
      ['unruled', undefined],
    ]);
  });

  test('are known in an answer that is given again', async () => {
    await rule('ruled');
    await accept('ruled');

    expect(await take(old, 2)).toEqual([['ruled', true]]);
    expect(await take(old, 2)).toEqual([['ruled', true]]);
  });
});

describe('ruled accounts on two sessions', () => {
  let rig: LedgerRig;
  eachWithLedger('postgres', (opened) => {
    rig = opened;
  });

  test('are known to a process that first takes calls while the account becomes ruled', async () => {
    const { pool } = rig.database;
    await rig.ledger.accept(acceptedCall({ accountId: 'ruled', acceptedAt: new Date() }), {});
    const request = { takeId: 1, isRepeated: false, limits: undefined, wanted: 1, horizonMs: 200 };

    const { taking } = await inTransaction(pool, async (client) => {
      await becomeRuled(client, 'ruled');
      const underWay = takesOf(pool, 'a/1').take({ ...request, source: 'sandbox' });
      const waiting = `select from pg_locks where locktype = 'advisory' and not granted`;
      const isWaiting = async () => (await pool.query(waiting)).rowCount === 1;
      await eventually(isWaiting, 'the take waits for the change');
      return { taking: underWay };
    });

    expect((await taking).grants).toMatchObject([{ call: { isRuled: true } }]);
  });
});
