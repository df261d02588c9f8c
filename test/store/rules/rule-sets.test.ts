// The rule sets in the database, and the rules that apply to calls and to requests.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RuleSetDocument } from '../../../src/rules/rule-set.ts';
import { readRules, rulesLock } from '../../../src/store/rules/current-rules.ts';
import { createRuleBook } from '../../../src/store/rules/rule-book.ts';
import {
  createRuleSetStore,
  maxRuleSets,
  type RuleSetStore,
} from '../../../src/store/rules/rule-sets.ts';
import { inTransaction } from '../../../src/store/transaction.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';

const strict: RuleSetDocument = { attempts: [{ most: 1, within: '24h' }] };
const lenient: RuleSetDocument = { attempts: [{ most: 9, within: '24h' }] };

describe.each(databaseKinds)('rule sets on %s', (kind) => {
  let database: TestDatabase;
  let store: RuleSetStore;
  let now = new Date('2026-11-24T12:00:00.000Z');

  beforeAll(async () => {
    database = await openTestDatabase(kind);
    store = createRuleSetStore({ database, clock: { now: () => now } });
  });

  afterEach(() => database.clear());
  afterAll(() => database.remove());

  const put = (name: string, document: RuleSetDocument, accountId = 'acme') =>
    store.put(accountId, name, { document, appId: 'app-1' });
  const applying = async (rules?: string, deleted: 'apply' | 'omit' = 'apply') => {
    const call = { accountId: 'acme', ...(rules === undefined ? {} : { rules }) };
    return (await readRules(database.pool, [call], { deleted }))(call);
  };

  test('keep the document as it was written, with a version, a time and an app', async () => {
    await put('default', strict);

    const found = await store.find('acme', 'default');

    expect(found).toEqual({
      name: 'default',
      version: 1,
      changedAt: now,
      changedByApp: 'app-1',
      document: strict,
    });
    expect(await store.list('acme')).toEqual([found]);
    expect(await store.list('other')).toEqual([]);
  });

  test('a change adds a version, and earlier versions stay', async () => {
    await put('default', strict);
    now = new Date('2026-11-25T12:00:00.000Z');
    const changed = await put('default', lenient);

    expect(changed).toMatchObject({ ruleSet: { version: 2, changedAt: now, document: lenient } });
    expect(await store.find('acme', 'default', 1)).toMatchObject({ document: strict });
    expect(await store.find('acme', 'default', 3)).toBeUndefined();
    expect(await store.list('acme')).toHaveLength(1);
  });

  test('the same document again adds none, even with its members in another order', async () => {
    await put('default', { consent: 'required', ...strict });
    const again = await put('default', { ...strict, consent: 'required' });

    expect(again).toMatchObject({ ruleSet: { version: 1 } });
  });

  test('versions continue after a deletion', async () => {
    await put('default', strict);

    expect(await store.remove('acme', 'default')).toBe(true);
    expect(await store.remove('acme', 'default')).toBe(false);
    expect(await store.find('acme', 'default')).toBeUndefined();
    expect(await store.find('acme', 'default', 1)).toMatchObject({ document: strict });

    expect(await put('default', strict)).toMatchObject({ ruleSet: { version: 2 } });
  });

  test('an account may have a hundred', async () => {
    for (let count = 0; count < maxRuleSets; count += 1) await put(`set-${count}`, strict);

    expect(await put('one-more', strict)).toEqual({ kind: 'full' });
    expect(await put('set-0', lenient)).toMatchObject({ kind: 'stored' });
    expect(await put('one-more', strict, 'other')).toMatchObject({ kind: 'stored' });
  });

  test('changes at once get a version each', async () => {
    const documents = Array.from({ length: 8 }, (_, most) => ({
      attempts: [{ most: most + 1, within: '24h' }],
    }));

    const stored = await Promise.all(documents.map((document) => put('default', document)));

    const versions = stored.map((one) => (one.kind === 'stored' ? one.ruleSet.version : 0));
    expect(versions.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const current = await store.find('acme', 'default');
    expect(current?.version).toBe(8);
  });

  describe('the rules that apply to a call', () => {
    test('are those of `default`, or of the set that its request names', async () => {
      await put('default', strict);
      await put('campaign', lenient);

      expect(await applying()).toMatchObject({ name: 'default', version: 1 });
      expect(await applying('campaign')).toMatchObject({
        name: 'campaign',
        rules: { attempts: [{ most: 9 }] },
      });
    });

    test('are none without `default`, and none after its deletion', async () => {
      await put('campaign', lenient);
      expect(await applying()).toBeUndefined();

      await put('default', strict);
      await store.remove('acme', 'default');
      expect(await applying()).toBeUndefined();
    });

    test('are those of a deleted set that its request named, but no new request may name it', async () => {
      await put('campaign', strict);
      await put('campaign', lenient);
      await store.remove('acme', 'campaign');

      expect(await applying('campaign')).toMatchObject({ name: 'campaign', version: 2 });
      expect(await applying('campaign', 'omit')).toBeUndefined();
    });

    test('are read for many calls at once', async () => {
      await put('default', strict);
      await put('default', lenient, 'other');
      const calls = [
        { accountId: 'acme' },
        { accountId: 'other' },
        { accountId: 'acme', rules: 'unknown' },
        { accountId: 'without' },
      ];

      const rulesOf = await readRules(database.pool, calls, { deleted: 'apply' });

      expect(calls.map((call) => rulesOf(call)?.rules.attempts[0]?.most)).toEqual([
        1,
        9,
        undefined,
        undefined,
      ]);
    });
  });

  describe('the rule book', () => {
    let nowMs = 1_000_000;
    const openBook = () => createRuleBook(database.pool, () => nowMs);

    test('finds `default` and named sets', async () => {
      await put('default', strict);
      await put('campaign', lenient);
      const book = openBook();

      expect(await book.find('acme', undefined)).toMatchObject({ name: 'default' });
      expect(await book.find('acme', 'campaign')).toMatchObject({ name: 'campaign' });
      expect(await book.find('acme', 'unknown')).toBe('unknown');
      expect(await book.find('other', undefined)).toBeUndefined();
    });

    test('finds a named set that was stored a moment ago by another node', async () => {
      const book = openBook();
      expect(await book.find('acme', 'campaign')).toBe('unknown');

      await put('campaign', lenient);

      expect(await book.find('acme', 'campaign')).toMatchObject({ name: 'campaign' });
    });

    test('remembers rules for five seconds, or until they change', async () => {
      await put('default', strict);
      const book = openBook();
      const version = async () => {
        const found = await book.find('acme', undefined);
        return found === 'unknown' ? undefined : found?.version;
      };
      expect(await version()).toBe(1);

      await put('default', lenient);
      expect(await version()).toBe(1);
      nowMs += 5_000;
      expect(await version()).toBe(2);

      await put('default', strict);
      book.changed();
      expect(await version()).toBe(3);
    });

    test('asks nothing for accounts without rules', async () => {
      const statements: unknown[] = [];
      const counting = {
        query: ((...query: Parameters<typeof database.pool.query>) => {
          statements.push(query[0]);
          return database.pool.query(...query);
        }) as typeof database.pool.query,
      };
      const book = createRuleBook(counting, () => nowMs);

      for (let account = 0; account < 100; account += 1) {
        expect(await book.find(`account-${account}`, undefined)).toBeUndefined();
      }

      expect(statements).toEqual(['select account_id from ruled_accounts']);
    });
  });
});

// The embedded database has one session, so its transactions never overlap.
test('a change waits for the check of a call', async () => {
  await using database = await openTestDatabase('postgres');
  const store = createRuleSetStore({ database, clock: { now: () => new Date() } });
  const put = (document: RuleSetDocument) =>
    store.put('acme', 'default', { document, appId: 'app-1' });
  await put(strict);
  const order: string[] = [];

  let change: Promise<unknown> = Promise.resolve();
  await inTransaction(database.pool, async (client) => {
    await client.query(`select pg_advisory_xact_lock_shared(${rulesLock}, hashtext('acme'))`);
    change = put(lenient).then(() => order.push('changed'));
    const waiting = "select from pg_locks where locktype = 'advisory' and not granted";
    const isWaiting = async () => (await client.query(waiting)).rowCount === 1;
    await eventually(isWaiting, 'the change waits for the lock');
    order.push('checked');
  });
  await change;

  expect(order).toEqual(['checked', 'changed']);
});
