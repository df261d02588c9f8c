import { afterEach, describe, expect, test } from 'vitest';
import type { Suppression } from '../../../src/calls/rules/suppression.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { openLedger } from '../../support/ledger.ts';
import { forSuite } from '../../support/opened.ts';

const app = { accountId: 'acc', appId: 'crm' };
const optOut: Suppression = { reason: 'opt-out', source: 'web form' };
const hourMs = 3_600_000;

describe.each(databaseKinds)('suppressions on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  // The default way to close a resource would call its `remove`.
  const suppressions = forSuite(
    () => createSuppressions(database),
    () => undefined,
  );

  afterEach(() => database.clear());

  const put = (...entries: readonly (readonly [string, Suppression])[]) =>
    suppressions.put(app, new Map(entries));

  test('are found by their account and address', async () => {
    const replaced = await put(['+12025550110', optOut]);

    expect(replaced).toBe(0);
    expect(await suppressions.find('acc', '+12025550110')).toEqual({
      ...{ address: '+12025550110', ...optOut, appId: 'crm', createdAt: expect.any(Date) },
    });
    expect(await suppressions.find('acc', '+12025550111')).toBeUndefined();
    expect(await suppressions.find('another', '+12025550110')).toBeUndefined();
  });

  test('replace earlier ones of the same address, which are counted', async () => {
    await put(['+12025550110', { ...optOut, until: new Date(Date.now() + hourMs) }]);
    const replaced = await put(
      ['+12025550110', { reason: 'complaint', source: 'call centre' }],
      ['sip:bob@pbx.example', { reason: 'other', source: 'call centre' }],
    );

    expect(replaced).toBe(1);
    expect(await suppressions.check('acc', ['+12025550110', '+12025550111'])).toEqual(
      new Map([['+12025550110', { reason: 'complaint', source: 'call centre' }]]),
    );
  });

  test('end at their time', async () => {
    await put(
      ['+12025550110', { ...optOut, until: new Date(Date.now() - 1) }],
      ['+12025550111', { ...optOut, until: new Date(Date.now() + hourMs) }],
    );

    const listed = await suppressions.list('acc', { limit: 10 });

    expect(listed.suppressions.map(({ address }) => address)).toEqual(['+12025550111']);
    expect(await suppressions.find('acc', '+12025550110')).toBeUndefined();
    const checked = await suppressions.check('acc', ['+12025550110', '+12025550111']);
    expect([...checked.keys()]).toEqual(['+12025550111']);
  });

  test('are deleted after their end', async () => {
    await put(
      ['+12025550110', { ...optOut, until: new Date(Date.now() - 1) }],
      ['+12025550111', { ...optOut, until: new Date(Date.now() + hourMs) }],
      ['+12025550112', optOut],
    );

    await openLedger(database, () => new Date()).purge(new Date(0));

    const { rows } = await database.pool.query('select address from suppressions order by address');
    expect(rows).toEqual([{ address: '+12025550111' }, { address: '+12025550112' }]);
  });

  test('are removed once', async () => {
    await put(['+12025550110', optOut]);

    expect(await suppressions.remove('another', '+12025550110')).toBe(false);
    expect(await suppressions.remove('acc', '+12025550110')).toBe(true);
    expect(await suppressions.remove('acc', '+12025550110')).toBe(false);
  });

  test('are listed by address, page by page', async () => {
    const addresses = ['+12025550110', '+12025550111', '+12025550112', '+12025550113', 'sip:a@b'];
    await put(...addresses.toReversed().map((address) => [address, optOut] as const));

    const first = await suppressions.list('acc', { limit: 3 });
    const second = await suppressions.list('acc', { limit: 3, after: first.next ?? '' });

    expect(first.suppressions.map(({ address }) => address)).toEqual(addresses.slice(0, 3));
    expect(first.next).toBe('+12025550112');
    expect(second.suppressions.map(({ address }) => address)).toEqual(addresses.slice(3));
    expect(second.next).toBeUndefined();
  });
});
