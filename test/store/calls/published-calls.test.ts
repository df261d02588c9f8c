// What a repair of the event stream reads from the database.

import { describe, expect, test } from 'vitest';
import { queuedEvent } from '../../../src/calls/life/call-events.ts';
import { createPublishedCalls } from '../../../src/store/calls/published-calls.ts';
import { acceptedCall, answeredEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig, noon } from '../ledger-rig.ts';

describe.each(databaseKinds)('published calls on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (opened) => {
    rig = opened;
  });

  test('come in pages, with the events since a time and how far they were published', async () => {
    const { ledger, database } = rig;
    const calls = [acceptedCall(), acceptedCall(), acceptedCall()];
    for (const call of calls) await ledger.accept(call, {});
    const [first] = calls;
    if (first === undefined) throw new Error('no call');
    await rig.take(first.callId, 'node-1/1');
    const answered = answeredEventOf(first, noon.toISOString());
    await rig.append('node-1/1', first, { events: [answered], answeredAt: noon });
    await database.pool.query(
      `update calls set published_event_sequence = 1, end_published_at = now() where call_id = $1`,
      [first.callId],
    );
    const published = createPublishedCalls(database.pool);

    const found = [];
    let after = { acceptedAtMs: 0, callId: '' };
    for (let page = 0; page < 5; page += 1) {
      const [call] = await published.page({ after, sinceMs: 0, limit: 1 });
      if (call === undefined) break;
      found.push(call);
      after = call;
    }

    expect(found.map(({ callId }) => callId).toSorted()).toEqual(
      calls.map(({ callId }) => callId).toSorted(),
    );
    expect(found.find(({ callId }) => callId === first.callId)).toMatchObject({
      publishedThrough: 1,
      events: [{ eventSequence: 1 }, { id: answered.id }],
    });
    expect(await published.eventsOf([first.callId])).toEqual([queuedEvent(first), answered]);
    const settled = await published.lastSettled(10);
    expect(settled.map(({ callId }) => callId)).toEqual([first.callId]);
    expect(await published.lastUnsettled(10)).toEqual([]);
    const [, second] = calls;
    await database.pool.query(`update calls set published_event_sequence = 1 where call_id = $1`, [
      second?.callId,
    ]);
    const unsettled = await published.lastUnsettled(10);
    expect(unsettled).toMatchObject([{ callId: second?.callId, publishedThrough: 1 }]);
    const own = { after: { acceptedAtMs: 0, callId: '' }, limit: 10, ownerId: 'node-1/1' };
    expect(await published.page({ ...own, sinceMs: 0 })).toEqual([]);
    const later = await published.page({ ...own, sinceMs: Date.now() + 1e9, ownerId: undefined });
    expect(later.flatMap(({ events }) => events)).toEqual([]);
  });
});
