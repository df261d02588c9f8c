import { describe, expect, test } from 'vitest';
import type { DialTarget } from '../../../src/calls/call-types.ts';
import { type AppLimits, mayDial } from '../../../src/calls/target/app-limits.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig, noon, tomorrow } from '../ledger-rig.ts';

const tel = (number: string): DialTarget => ({ kind: 'tel', number });
const sip = (user: string): DialTarget => ({ kind: 'sip', user, host: 'pbx.example' });

describe('prefixes of an app', () => {
  const european = { allowedPrefixes: ['49', '43'], deniedPrefixes: ['49900'] };

  test.each([
    ['a number of an allowed country', tel('4930123456'), true],
    ['a number of another country', tel('15551234567'), false],
    ['a premium number of an allowed country', tel('49900123456'), false],
    ['the user of a sip: target, as a global number', sip('+4930123456'), true],
    ['a number without its plus, which may be anything', sip('4930123456'), false],
    ['a name with an unknown number', sip('alice'), false],
    ['an escaped plus', sip('%2B4930123456'), false],
    ['parameters behind the number', sip('+4930123456;ext=9'), false],
  ])('%s', (_what, target, allowed) => {
    expect(mayDial(european, target)).toBe(allowed);
  });

  test('that are denied cannot be evaded with an international prefix', () => {
    const limits = { deniedPrefixes: ['1900'] };

    expect(mayDial(limits, tel('15551234567'))).toBe(true);
    expect(mayDial(limits, tel('19005551234'))).toBe(false);
    expect(mayDial(limits, tel('0019005551234'))).toBe(false);
    expect(mayDial(limits, sip('0119005551234'))).toBe(false);
  });

  test('allow everything if there are no prefixes', () => {
    expect(mayDial({ callsAtOnce: 1 }, sip('alice'))).toBe(true);
    expect(mayDial(undefined, tel('0019005551234'))).toBe(true);
  });
});

describe.each(databaseKinds)('limits of an app on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  const refused = (limit: string) => ({ kind: 'refused', limit });

  test('refuse a call over `callsAtOnce` until another one has ended', async () => {
    const limits: AppLimits = { callsAtOnce: 2 };
    const first = acceptedCall();
    await rig.ledger.accept(first, { limits });
    await rig.ledger.accept(acceptedCall(), { limits });

    expect(await rig.ledger.accept(acceptedCall(), { limits })).toEqual(refused('callsAtOnce'));
    expect(await rig.ledger.accept(acceptedCall({ appId: 'app-2' }), { limits })).toMatchObject({
      kind: 'accepted',
    });
    await rig.database.pool.query('update calls set ended_at = now() where call_id = $1', [
      first.callId,
    ]);
    expect(await rig.ledger.accept(acceptedCall(), { limits })).toEqual({ kind: 'accepted' });
  });

  test('refuse a call over `callsPerDay` until midnight UTC', async () => {
    const limits: AppLimits = { callsPerDay: 2 };
    const at = (acceptedAt: Date) => rig.ledger.accept(acceptedCall({ acceptedAt }), { limits });

    expect([await at(noon), await at(noon)]).toEqual(Array(2).fill({ kind: 'accepted' }));
    expect(await at(new Date('2026-03-01T23:59:59.999Z'))).toEqual(refused('callsPerDay'));
    expect(await at(new Date('2026-03-02T00:00:00.000Z'))).toEqual({ kind: 'accepted' });
    // A node whose clock is behind must not get yesterday's allowance back.
    expect(await at(noon)).toEqual({ kind: 'accepted' });
    expect(await at(tomorrow)).toEqual(refused('callsPerDay'));
  });

  test('are exact even if two nodes accept concurrently', async () => {
    const limits: AppLimits = { callsAtOnce: 25, callsPerDay: 30 };
    const nodes = [rig.openLedger(), rig.openLedger()] as const;

    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        nodes[index % 2 === 0 ? 0 : 1].accept(acceptedCall(), { limits }),
      ),
    );

    expect(results.filter(({ kind: is }) => is === 'accepted')).toHaveLength(25);
    expect(results.filter(({ kind: is }) => is === 'refused')).toHaveLength(75);
    await rig.database.pool.query('update calls set ended_at = now()');
    const more = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        nodes[index % 2 === 0 ? 0 : 1].accept(acceptedCall(), { limits }),
      ),
    );
    expect(more.filter(({ kind: is }) => is === 'accepted')).toHaveLength(5);
  });

  test('do not count a repeated request, which gets the first answer even at the limit', async () => {
    const limits: AppLimits = { callsAtOnce: 1, callsPerDay: 1 };
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };

    const together = await Promise.all([
      rig.ledger.accept(acceptedCall(), { limits, idempotency }),
      rig.ledger.accept(acceptedCall(), { limits, idempotency }),
    ]);
    const later = await rig.ledger.accept(acceptedCall(), { limits, idempotency });
    const another = await rig.ledger.accept(acceptedCall(), {
      limits,
      idempotency: { key: 'key-1', requestHash: 'hash-2' },
    });

    expect(together.map(({ kind: is }) => is).toSorted()).toEqual(['accepted', 'replayed']);
    expect(later.kind).toBe('replayed');
    expect(another).toEqual({ kind: 'conflict' });
    expect(await rig.ledger.accept(acceptedCall(), { limits })).toMatchObject({ kind: 'refused' });
  });

  test('refuse a number that the app may not dial, without storing its key', async () => {
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };
    const call = () => acceptedCall();

    const before = await rig.ledger.accept(call(), {
      limits: { allowedPrefixes: ['999'] },
      idempotency,
    });
    const after = await rig.ledger.accept(call(), { limits: { callsAtOnce: 1 }, idempotency });
    const narrowed = await rig.ledger.accept(call(), {
      limits: { allowedPrefixes: ['999'] },
      idempotency,
    });

    expect([before, after]).toEqual([refused('target'), { kind: 'accepted' }]);
    // A repeated request still gets the answer of its accepted call.
    expect(narrowed.kind).toBe('replayed');
  });
});
