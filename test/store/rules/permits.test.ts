// Calls of accounts with calling rules are checked when they are taken: no interleaving of nodes
// lets two calls pass where the rules permit one.

import type { Pool } from 'pg';
import { beforeEach, describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { CallTakes, Grant } from '../../../src/calls/dialout-ports.ts';
import { listCalls } from '../../../src/interactions/call-summaries.ts';
import type { RuleSetDocument } from '../../../src/rules/rule-set.ts';
import { releaseHeld } from '../../../src/store/rules/held-calls.ts';
import { createRuleSetStore } from '../../../src/store/rules/rule-sets.ts';
import { createSuppressedCalls } from '../../../src/store/rules/suppressed-calls.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { acceptedCall, answeredEventOf, endEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { takesOf } from '../../support/takes.ts';
import { eachWithLedger, type LedgerRig } from '../ledger-rig.ts';

const once: RuleSetDocument = { attempts: [{ most: 1, within: '24h' }] };
const hourMs = 3_600_000;

type Options = {
  readonly number?: string;
  readonly accountId?: string;
  readonly request?: Partial<AcceptedCall['request']>;
};

describe.each(databaseKinds)('calling rules on %s', (kind) => {
  let rig: LedgerRig;
  let now: Date;
  let takeId = 0;
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });
  beforeEach(() => {
    now = new Date();
    rig.setNow(now);
  });

  const node = (ownerId: string, maxHeldPerAccount = 1_000, pool: Pool = rig.database.pool) =>
    takesOf(pool, ownerId, { clock: { now: () => now }, maxHeldPerAccount });
  const rule = (document: RuleSetDocument, name = 'default', accountId = 'account-1') =>
    createRuleSetStore({ database: rig.database, clock: { now: () => now } }).put(accountId, name, {
      ...{ document, appId: 'app-1' },
    });
  const suppress = (address: string, accountId = 'account-1') =>
    createSuppressions(rig.database).put(
      { accountId, appId: 'app-1' },
      new Map([[address, { reason: 'opt-out', source: 'test' }]]),
    );
  let age = 0;
  const accept = async ({ number = '14155550100', accountId, request }: Options = {}) => {
    age += 1;
    const base = acceptedCall({
      acceptedAt: new Date(Date.now() - 60_000 + age),
      ...(accountId === undefined ? {} : { accountId }),
    });
    const target = { kind: 'tel', number } as const;
    const call = { ...base, request: { ...base.request, target, ...request } };
    await rig.ledger.accept(call, {});
    return call;
  };
  const take = async (takes: CallTakes, again?: number): Promise<readonly Grant[]> => {
    takeId += again === undefined ? 1 : 0;
    const request = { takeId: again ?? takeId, isRepeated: again !== undefined, wanted: 50 };
    const limits = { maxConcurrentCalls: 100 };
    const { grants } = await takes.take({
      ...{ ...request, source: 'sandbox', limits, horizonMs: 200 },
    });
    return grants;
  };
  /** Says of each granted call whether it may be dialled, or else the rule that refuses it. */
  const fates = (grants: readonly Grant[]) =>
    grants.map(({ refusal }) => refusal?.rule ?? 'permitted');
  const numbers = async () =>
    (
      await rig.database.pool.query<{ number: string; call_ids: string[]; answered: boolean }>(
        `select number, call_ids, answered_at is not null as answered from called_numbers order by 1`,
      )
    ).rows;

  test('permit a call under a rule set, and say under which', async () => {
    await rule(once);
    const call = await accept();

    const [grant] = await take(node('a/1'));

    expect(grant).toMatchObject({
      call: { isRuled: true, ruling: { ruleSet: 'default', version: 1 } },
    });
    expect(grant?.refusal).toBeUndefined();
    expect(await rig.rowOf(call.callId)).toMatchObject({
      rule_set: 'default',
      rule_set_version: 1,
    });
    expect(await numbers()).toEqual([
      { number: '+14155550100', call_ids: [call.callId], answered: false },
    ]);
  });

  test('say when the hours end that permit a call', async () => {
    const windows = [{ days: 'mon-sun', from: '00:00', until: '12:00' }];
    await rule({ hours: { zones: 'Asia/Tokyo', windows } });
    now = new Date('2026-03-01T01:00:00Z');
    await accept();

    const [grant] = await take(node('a/1'));

    expect(grant?.call.hoursEndAt).toEqual(new Date('2026-03-01T03:00:00Z'));
  });

  test('permit one of two calls to a number in one take, and name when the other may follow', async () => {
    await rule(once);
    await accept();
    await accept();

    const grants = await take(node('a/1'));

    expect(fates(grants)).toEqual(['permitted', 'attempts']);
    expect(grants[1]?.refusal?.notBefore).toEqual(new Date(now.getTime() + 24 * hourMs));
  });

  test.each(['wait', 'fail'] as const)(
    'give back the start of a call that has to %s',
    async (otherwise) => {
      const windows = [{ days: 'mon-sun', from: '00:00', until: '12:00' }];
      await rule({ hours: { zones: 'Asia/Tokyo', windows, otherwise } }, 'mornings');
      now = new Date('2026-03-01T10:00:00Z');
      const asleep = { request: { rules: 'mornings' } } as const;
      await accept(asleep);
      const first = await accept();
      await accept(asleep);
      const second = await accept();
      takeId += 1;
      const ask = { takeId, isRepeated: false, wanted: 50, horizonMs: 200 };

      const taken = await node('a/1').take({
        ...{ ...ask, source: 'sandbox', limits: { callsPerSecond: 20 } },
      });

      const dialled = taken.grants.filter(({ refusal }) => refusal === undefined);
      const ids = dialled.map(({ call }) => call.callId);
      expect(ids).toEqual([first.callId, second.callId]);
      const { rows } = await rig.database.pool.query<{ gap: number }>(
        `select round(extract(epoch from lead(at) over (order by at) - at) * 1000)::integer as gap from (
           select start_at as at from trunk_slots where call_id = any($1)
           union all select next_start_at from trunk_pacing where trunk = 'sandbox') as starts
         order by at`,
        [ids],
      );
      expect(rows.map(({ gap }) => gap)).toEqual([50, 50, null]);
    },
  );

  test('permit one of many calls to a number that nodes take concurrently', async () => {
    await rule(once);
    for (let index = 0; index < 12; index += 1) await accept({ number: `1415555010${index % 3}` });
    // Each take is small, so that every node gets calls to every number.
    const few = async (takes: CallTakes) => {
      takeId += 1;
      const ask = { takeId, isRepeated: false, limits: undefined, horizonMs: 200 };
      return (await takes.take({ ...ask, source: 'sandbox', wanted: 3 })).grants;
    };

    const taken = await Promise.all([1, 2, 3, 4].map((index) => few(node(`n/${index}`))));

    const permitted = taken.flat().filter(({ refusal }) => refusal === undefined);
    const dialled = permitted.map(({ call }) => JSON.stringify(call.request.target));
    expect(new Set(dialled).size).toBe(3);
    expect(dialled).toHaveLength(3);
  });

  test('do not deadlock on many numbers in opposite orders', async () => {
    await rule({ attempts: [{ most: 100, within: '24h' }] });
    const digits = Array.from({ length: 25 }, (_, index) => String(14155550100 + index));
    for (const number of digits) await accept({ number });
    for (const number of digits.toReversed()) await accept({ number });
    const ask = { isRepeated: false, limits: undefined, horizonMs: 200, wanted: 25 };

    const taken = await Promise.all(
      ['a/1', 'b/1'].map((ownerId) => node(ownerId).take({ ...ask, takeId: 1, source: 'sandbox' })),
    );

    expect(taken.map(({ grants }) => grants.length)).toEqual([25, 25]);
    expect((await numbers()).map(({ call_ids: ids }) => ids.length)).toEqual(digits.map(() => 2));
  });

  test('decide the same again if the answer was lost', async () => {
    await rule(once);
    await accept();
    await accept();
    const takes = node('a/1');

    const first = await take(takes);
    const again = await take(takes, takeId);

    expect(fates(again)).toEqual(fates(first));
    expect((await numbers())[0]?.call_ids).toEqual([first[0]?.call.callId]);
  });

  test('refuse suppressed numbers and URIs, under any rule set and without one', async () => {
    await suppress('+14155550100');
    await suppress('sip:bob@example.com');
    await accept();
    await accept({ number: '14155550101' });
    const target = { kind: 'sip', user: 'bob', host: 'example.com' } as const;
    await accept({ request: { target } });
    await accept({ accountId: 'another' });

    expect(fates(await take(node('a/1')))).toEqual([
      ...['suppressed', 'permitted', 'suppressed', 'permitted'],
    ]);
  });

  test('let a call wait, give back its slot, and check it again when its time has come', async () => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    await accept();
    const second = await accept({ request: { queueTimeoutMs: 72 * hourMs } });
    const takes = node('a/1');

    expect(fates(await take(takes))).toEqual(['permitted']);
    expect(await rig.rowOf(second.callId)).toMatchObject({
      ...{ state: 'queued', status: 'queued', owner_id: null, dial_started_at: null },
      ...{ waits_for: 'attempts', not_before: new Date(now.getTime() + 24 * hourMs) },
    });
    expect((await rig.database.pool.query('select from trunk_slots')).rowCount).toBe(1);
    expect(await takes.sweep([])).toMatchObject({ waiting: new Map(), isHolding: true });
    expect(await take(takes)).toEqual([]);

    now = new Date(now.getTime() + 24 * hourMs);
    await rig.database.pool.query(
      `update calls set not_before = now() where not_before is not null`,
    );
    expect((await takes.sweep([])).waiting).toEqual(new Map([['sandbox', 1]]));
    expect(fates(await take(takes))).toEqual(['permitted']);
    expect((await takes.sweep([])).isHolding).toBe(false);
  });

  test('show in lists what a call waits for', async () => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    await accept();
    const second = await accept();
    await take(node('a/1'));

    const page = await listCalls(
      rig.database.pool,
      { accountId: 'account-1', botId: 'bot-1' },
      { status: 'queued', limit: 10 },
    );

    const until = new Date(now.getTime() + 24 * hourMs).toISOString();
    expect(page).toMatchObject({
      calls: [{ callId: second.callId, state: 'queued', waitsFor: { rule: 'attempts', until } }],
    });
  });

  test('check the calls that wait against a change at once', async () => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    await accept();
    await accept();
    const takes = node('a/1');
    await take(takes);

    await rule({});
    await releaseHeld(rig.database.pool, 'account-1');
    await takes.sweep([]);

    expect(fates(await take(takes))).toEqual(['permitted']);
  });

  test('a number that is suppressed while a call waits is never dialled', async () => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    await accept();
    await accept();
    const takes = node('a/1');
    await take(takes);

    await suppress('+14155550100');
    await releaseHeld(rig.database.pool, 'account-1');
    await takes.sweep([]);

    expect(fates(await take(takes))).toEqual(['suppressed']);
  });

  test.each([
    ['its suppression', '+14155550100'],
    ['an import', undefined],
  ])('a call that waits for a rule ends soon after %s', async (_what, released) => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    const others = { number: '14155550199' };
    const rival = { accountId: 'account-2' };
    await rule(
      { attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] },
      'default',
      'account-2',
    );
    for (const options of [{}, others, rival, {}, others, rival]) await accept(options);
    const takes = node('a/1');
    await take(takes);
    expect(await take(takes)).toEqual([]);

    await suppress('+14155550100');
    await createSuppressedCalls(rig.database.pool).release('account-1', released);
    await takes.sweep([]);

    expect(fates(await take(takes))).toEqual(['suppressed']);
    expect(await take(takes)).toEqual([]);
  });

  test('a suppressed sip: URI releases no call', async () => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    await accept();
    await accept();
    const takes = node('a/1');
    await take(takes);

    await suppress('sip:bob@pbx.example');
    await createSuppressedCalls(rig.database.pool).release('account-1', 'sip:bob@pbx.example');
    await takes.sweep([]);

    expect(await take(takes)).toEqual([]);
  });

  test('report a call that waited too long with the rule that it waited for', async () => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    await accept();
    const late = await accept();
    const takes = node('a/1');
    await take(takes);
    await rig.database.pool.query(
      `update calls set dial_before = now() - interval '1 s' where call_id = $1`,
      [late.callId],
    );

    const { expired } = await takes.sweep([]);

    const notBefore = new Date(now.getTime() + 24 * hourMs);
    expect(expired).toMatchObject([
      { call: { callId: late.callId }, refusal: { rule: 'attempts', notBefore } },
    ]);
    const ending = { event: endEventOf(late) };
    await rig.append('a/1', late, { ending }, { isUntaken: true });
    expect(await rig.rowOf(late.callId)).toMatchObject({ not_before: null, waits_for: null });
  });

  test('end a call that would have to wait if too many of the account wait already', async () => {
    await rule({ attempts: [{ most: 1, within: '24h', otherwise: 'wait' }] });
    for (let index = 0; index < 4; index += 1) await accept();

    const grants = await take(node('a/1', 2));

    expect(fates(grants)).toEqual(['permitted', 'attempts']);
  });

  test('count the calls from before the first rule', async () => {
    const earlier = await accept();
    const [grant] = await take(node('a/1'));
    expect(grant?.call.isRuled).toBeUndefined();
    await rig.append('a/1', earlier, { dialedAt: now });

    await rule(once);
    await accept();

    expect(fates(await take(node('a/1')))).toEqual(['attempts']);
  });

  test('count attempts by the whole account, and those of no other', async () => {
    await rule(once);
    await rule(once, 'default', 'account-2');
    await accept();
    await accept({ accountId: 'account-2' });

    expect(fates(await take(node('a/1')))).toEqual(['permitted', 'permitted']);
  });

  test('give back the attempt of a call that ends without an INVITE', async () => {
    await rule(once);
    await accept();
    const [grant] = await take(node('a/1'));
    const call = grant?.call as AcceptedCall;

    await rig.append('a/1', call, { ending: { event: endEventOf(call), isUnsent: true } });
    await rig.append('a/1', call, { ending: { event: endEventOf(call), isUnsent: true } });

    expect((await numbers())[0]?.call_ids).toEqual([]);
    await accept();
    expect(fates(await take(node('b/1')))).toEqual(['permitted']);
  });

  test('date an attempt by its INVITE, which may have to wait after the check', async () => {
    await rule({ attempts: [{ most: 1, within: '1h' }] });
    await accept();
    const [grant] = await take(node('a/1'));
    const call = grant?.call as AcceptedCall;
    const dialedAt = new Date(now.getTime() + 5 * 60_000);

    await rig.append('a/1', call, { dialedAt });

    now = new Date(now.getTime() + hourMs);
    await accept();
    const [refused] = await take(node('b/1'));
    const notBefore = new Date(dialedAt.getTime() + hourMs);
    expect(refused?.refusal).toEqual({ rule: 'attempts', notBefore });
  });

  test('date the attempt of a process that died by the end of its call, unless its INVITE is known', async () => {
    await rule({ attempts: [{ most: 1, within: '1h' }] });
    const numbers = ['14155550111', '14155550112'];
    for (const number of numbers) await accept({ number });
    const calls = (await take(node('a/1'))).map(({ call }) => call);
    const dialedAt = new Date(now.getTime() + 1_000);
    const [known, unknown] = calls as [AcceptedCall, AcceptedCall];
    await rig.append('a/1', known, { dialedAt });

    // Recovery reads calls from the database, which does not say that they are ruled.
    const endedAt = new Date(now.getTime() + 60_000);
    for (const { isRuled: _, ...call } of [known, unknown]) {
      const ending = { event: endEventOf(call, {}), sentBy: endedAt };
      await rig.append('a/1', call, { ending });
    }

    now = new Date(now.getTime() + hourMs);
    for (const number of numbers) await accept({ number });
    const refused = (await take(node('b/1'))).map(({ call, refusal }) => ({
      target: call.request.target,
      notBefore: refusal?.notBefore,
    }));
    const laterBy = (from: Date) => new Date(from.getTime() + hourMs);
    expect(refused).toEqual([
      { target: known.request.target, notBefore: laterBy(dialedAt) },
      { target: unknown.request.target, notBefore: laterBy(endedAt) },
    ]);
  });

  test('leave a number alone after an answer', async () => {
    await rule({ rest: { afterAnswered: '7d' } });
    await accept();
    const [grant] = await take(node('a/1'));
    const call = grant?.call as AcceptedCall;
    const event = answeredEventOf(call, now.toISOString());
    await rig.append('a/1', call, { events: [event], answeredAt: now });

    await accept();

    const [refused] = await take(node('b/1'));
    expect(refused?.refusal).toEqual({
      ...{ rule: 'rest', notBefore: new Date(now.getTime() + 7 * 24 * hourMs) },
    });
  });

  test('keep the attempt of a call whose process died', async () => {
    await rule(once);
    await accept();
    await take(node('dead/1'));

    await accept();

    expect(fates(await take(node('a/1')))).toEqual(['attempts']);
  });

  test('cost calls of other accounts no statement', async () => {
    await rule(once);
    const statements: unknown[] = [];
    const { pool } = rig.database;
    const watched = {
      query: (...sent: [never, never]) => {
        statements.push(sent[0]);
        return pool.query(...sent);
      },
      connect: () => {
        statements.push('connect');
        return pool.connect();
      },
    } as unknown as Pool;
    await accept({ accountId: 'unruled' });

    expect(fates(await take(node('a/1', 1, watched)))).toEqual(['permitted']);
    expect(statements).toMatchObject([{ name: 'take calls' }]);
  });
});
