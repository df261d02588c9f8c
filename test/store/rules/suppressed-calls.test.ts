import { afterEach, describe, expect, test } from 'vitest';
import type { AcceptedCall, DialTarget } from '../../../src/calls/call-types.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createSuppressedCalls } from '../../../src/store/rules/suppressed-calls.ts';
import { createSuppressionCheck } from '../../../src/store/rules/suppression-check.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { openLedger } from '../../support/ledger.ts';
import { forSuite } from '../../support/opened.ts';

const number: DialTarget = { kind: 'tel', number: '12025550110' };
const escaped: DialTarget = { kind: 'sip', user: '%2B12025550110', host: 'carrier.example' };
const bob: DialTarget = { kind: 'sip', user: 'bob', host: 'pbx.example', port: 5070 };

describe.each(databaseKinds)('calls to a suppressed number on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  const ledger = forSuite(() => openLedger(database));
  afterEach(() => database.clear());

  async function place(target: DialTarget, changes = 'owner_id = $2'): Promise<AcceptedCall> {
    const { request, ...call } = acceptedCall();
    const placed = { ...call, request: { ...request, target } };
    await ledger.accept(placed, {});
    await database.pool.query(`update calls set ${changes} where call_id = $1 and $2 <> ''`, [
      placed.callId,
      'a/1',
    ]);
    return placed;
  }

  test('are those that a process has taken and nobody has answered', async () => {
    const { accountId, callId } = await place(number);
    const spelledOtherwise = await place(escaped);
    await place(number, "state = 'queued'");
    await place(number, 'owner_id = $2, answered_at = now()');
    await place(number, 'owner_id = $2, ended_at = now()');
    await place({ kind: 'tel', number: '12025550111' });
    await place(bob);

    const ringing = await createSuppressedCalls(database.pool).ringing(accountId, '+12025550110');

    expect(ringing.toSorted((one, other) => (one.callId < other.callId ? -1 : 1))).toEqual(
      [callId, spelledOtherwise.callId].toSorted().map((id) => ({ callId: id, ownerId: 'a/1' })),
    );
  });

  test('are found for all suppressed addresses of their account', async () => {
    const { accountId, callId } = await place(number);
    const toBob = await place(bob);
    await place({ kind: 'tel', number: '12025550111' });
    const calls = createSuppressedCalls(database.pool);
    const suppression = { reason: 'other', source: 'test' } as const;
    const addresses = ['+12025550110', 'sip:bob@pbx.example'];
    await createSuppressions(database).put(
      { accountId, appId: 'crm' },
      new Map(addresses.map((address) => [address, suppression])),
    );

    const ringing = await calls.ringing(accountId);

    expect(new Set(ringing.map((call) => call.callId))).toEqual(new Set([callId, toBob.callId]));
    expect(await calls.ringing('another')).toEqual([]);
  });

  test('are up until they are answered, or ended and off the wire', async () => {
    const ringing = await place(number);
    const answered = await place(number, 'owner_id = $2, answered_at = now()');
    const justEnded = await place(number, 'owner_id = $2, ended_at = now()');
    const past = "owner_id = $2, ended_at = now() - interval '1 minute'";
    const gone = await place(number, past);
    const settled = await place(number, `${past}, end_published_at = now()`);
    const lingering = await place(number, past);
    for (const { callId } of [settled, lingering]) {
      await database.pool.query("insert into call_legs values ($1, $1, '{}')", [callId]);
    }
    const all = [ringing, answered, justEnded, gone, settled, lingering];

    const up = await createSuppressedCalls(database.pool).stillUp(all.map((call) => call.callId));

    expect(new Set(up)).toEqual(
      new Set([ringing, justEnded, lingering].map(({ callId }) => callId)),
    );
  });

  test('may not be placed', async () => {
    const check = createSuppressionCheck(database.pool, silentLogger);
    const suppressions = createSuppressions(database);
    const app = { accountId: 'acme', appId: 'crm' };
    await suppressions.put(app, new Map([['+12025550110', { reason: 'other', source: 'test' }]]));

    expect(await check.reach('acme', number)).toBe('suppressed');
    expect(await check.reach('acme', escaped)).toBe('suppressed');
    expect(await check.reach('acme', bob)).toBe('free');
    expect(await check.reach('another', number)).toBe('free');
    const local: DialTarget = { kind: 'local', digits: '7042', phoneContext: 'pbx.example' };
    expect(await check.reach('acme', local)).toBe('free');
  });
});

test('whether a number is suppressed is unknown while the database does not respond', async () => {
  const failing = { query: () => Promise.reject(new Error('unreachable')) };
  const silent = { query: () => new Promise<never>(() => undefined) };

  for (const pool of [failing, silent]) {
    const check = createSuppressionCheck(pool as never, silentLogger, 300);
    expect(await check.reach('acme', number)).toBe('unknown');
  }
});
