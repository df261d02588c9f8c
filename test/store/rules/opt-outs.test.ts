// The suppression of a person who opted out is stored together with the event.

import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import { nextEvent } from '../../../src/calls/life/call-events.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { acceptedCall, answeredEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig, noon } from '../ledger-rig.ts';

describe.each(databaseKinds)('an opt-out on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  async function answered(call = acceptedCall()): Promise<AcceptedCall> {
    await rig.ledger.accept(call, {});
    await rig.take(call.callId, 'a');
    const event = answeredEventOf(call, noon.toISOString());
    await rig.append('a', call, { events: [event], answeredAt: noon });
    return call;
  }

  function optOut(call: AcceptedCall, source = `key 9 of ${call.callId}`) {
    const numbers = { call, eventSequence: 6, notificationSequence: 1 };
    return nextEvent(numbers, 'opted-out', noon, { by: 'key', source }).event;
  }

  const suppressions = () => createSuppressions(rig.database);
  const addressOf = ({ request: { target } }: AcceptedCall) =>
    target.kind === 'tel' ? `+${target.number}` : '';
  const suppressionOf = (call: AcceptedCall) =>
    suppressions().find(call.accountId, addressOf(call));
  const ruledAccounts = async () => {
    const { rows } = await rig.database.pool.query<{ account_id: string }>(
      'select account_id from ruled_accounts',
    );
    return rows;
  };

  test('stores the event and the suppression, and makes the account ruled', async () => {
    const call = await answered();
    const event = optOut(call);

    expect(await rig.append('a', call, { events: [event] })).toMatchObject({ kind: 'stored' });

    expect(await rig.eventsOf(call.callId)).toContain('7 opted-out');
    expect(await suppressionOf(call)).toEqual({
      ...{ address: addressOf(call), appId: call.appId, createdAt: noon },
      ...{ reason: 'opt-out', source: `key 9 of ${call.callId}` },
    });
    expect(await ruledAccounts()).toEqual([{ account_id: call.accountId }]);
  });

  test('is stored once, although the answer of the database was lost', async () => {
    const call = await answered();
    const step = { events: [optOut(call)] };
    await rig.append('a', call, step);

    const again = await rig.append('a', call, step, { isRepeated: true });

    expect(again).toMatchObject({ kind: 'stored' });
    const { suppressions: all } = await suppressions().list(call.accountId, { limit: 10 });
    expect(all).toHaveLength(1);
  });

  test('replaces a suppression that would end', async () => {
    const call = await answered();
    const { accountId, appId } = call;
    const until = new Date(Date.now() + 3_600_000);
    await suppressions().put(
      { accountId, appId },
      new Map([[addressOf(call), { reason: 'other', source: 'holiday', until }]]),
    );

    await rig.append('a', call, { events: [optOut(call)] });

    expect(await suppressionOf(call)).toMatchObject({ reason: 'opt-out' });
    expect(await suppressionOf(call)).not.toHaveProperty('until');
  });

  test('keeps the suppression of a process that has lost the call', async () => {
    const call = await answered();

    const result = await rig.append('b', call, { events: [optOut(call)] });

    expect(result).toEqual({ kind: 'not owned' });
    expect(await rig.eventsOf(call.callId)).not.toContain('7 opted-out');
    expect(await suppressionOf(call)).toMatchObject({ reason: 'opt-out' });
  });

  test('shares a statement with other steps, two of them to the same number', async () => {
    const calls = [await answered(), await answered(), await answered()];
    const [first, second, other] = calls;
    const steps = [first, second].flatMap((call) => (call === undefined ? [] : [optOut(call)]));
    const waiting = { isUntaken: false, isRepeated: false };
    const batch = calls.map((call, index) => {
      const event = steps[index];
      return { ...waiting, call, step: { events: event === undefined ? [] : [event] } };
    });

    const results = await rig.appendAll('a', batch);

    expect(results.map((result) => result.kind)).toEqual(['stored', 'stored', 'stored']);
    expect(other).toBeDefined();
    const { suppressions: all } = await suppressions().list('account-1', { limit: 10 });
    expect(all).toHaveLength(1);
  });

  test('is all or nothing', async () => {
    const call = await answered();
    const numberless = { ...optOut(call), eventSequence: Number.NaN };

    await expect(rig.append('a', call, { events: [numberless] })).rejects.toThrow();

    expect(await suppressionOf(call)).toBeUndefined();
    expect(await ruledAccounts()).toEqual([]);
  });
});
