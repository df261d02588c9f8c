import { describe, expect, test } from 'vitest';
import { queuedEvent } from '../../../src/calls/life/call-events.ts';
import { createNodeStore } from '../../../src/store/nodes.ts';
import {
  acceptedCall,
  answeredEventOf,
  endEventOf,
  storedLeg,
} from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig, noon } from '../ledger-rig.ts';

describe.each(databaseKinds)('the ledger of calls on %s', (kind) => {
  let database: LedgerRig['database'];
  let ledger: LedgerRig['ledger'];
  let append: LedgerRig['append'];
  let take: LedgerRig['take'];
  let rowOf: LedgerRig['rowOf'];

  eachWithLedger(kind, (rig) => {
    ({ database, ledger, append, take, rowOf } = rig);
  });

  describe('reads', () => {
    test('lists calls taken over from a lost process, with everything that recovery needs', async () => {
      const nodes = (ownerId: string) => createNodeStore(database, ownerId, 60_000);
      const node = { nodeId: 'node-1', version: '1', questionKey: 'key' };
      await nodes('node-1/old').register(node);
      await nodes('node-1/new').register(node);
      const [mine, left, answered, queued] = [
        acceptedCall(),
        acceptedCall(),
        acceptedCall(),
        acceptedCall(),
      ];
      const event = answeredEventOf(answered, noon.toISOString());
      await Promise.all([mine, left, answered, queued].map((call) => ledger.accept(call, {})));
      await take(mine.callId, 'node-1/new');
      await take(left.callId, 'node-1/old');
      await take(answered.callId, 'node-1/old');
      const leg = { ...storedLeg, dialogId: 'dialog-1' };
      await append('node-1/old', answered, {
        events: [event],
        ringingAt: noon,
        answeredAt: noon,
        leg,
      });
      await nodes('node-1/new').expireOthers('everyone');

      const unfinished = await ledger.unfinished('node-1/new', 'taken over', 10);

      const common = { ownerId: 'node-1/old' };
      expect(unfinished).toHaveLength(2);
      expect(unfinished).toContainEqual({
        ...{ call: left, ...common, legs: [], events: [queuedEvent(left)] },
      });
      expect(unfinished).toContainEqual({
        call: answered,
        ...common,
        legs: [leg],
        ringingAt: noon,
        answeredAt: noon,
        events: [queuedEvent(answered), event],
      });
      await append('node-1/new', left, { ending: { event: endEventOf(left) } });
      expect(await ledger.unfinished('node-1/new', 'taken over', 10)).toHaveLength(1);
      const named = [mine.callId, answered.callId];
      const own = await ledger.unfinished('node-1/new', { callIds: named }, 10);
      expect(own.map(({ call }) => call.callId).sort()).toEqual([...named].sort());
    });

    test('lists unsettled ends, with their unpublished events and the leg of a lost process', async () => {
      const [own, lost] = [acceptedCall(), acceptedCall()];
      await Promise.all([own, lost].map((call) => ledger.accept(call, {})));
      await take(own.callId, 'a');
      await take(lost.callId, 'b');
      const end = { event: endEventOf(own) };
      await append('a', own, { leg: storedLeg, ending: end });
      await append('b', lost, { leg: storedLeg, ending: { event: endEventOf(lost) } });
      await database.pool.query(
        "update calls set published_event_sequence = 1, previous_owner_id = case when owner_id = 'b' then 'b' end, owner_id = 'a'",
      );

      const found = await ledger.unsettledEnds('a', [], 10);

      expect(found).toHaveLength(2);
      expect(found).toContainEqual({ call: own, events: [end.event], legs: [] });
      expect(found).toContainEqual({
        call: lost,
        events: [endEventOf(lost)],
        legs: [storedLeg],
      });
      expect(await ledger.unsettledEnds('a', [own.callId, lost.callId], 10)).toEqual([]);
      expect(await ledger.unsettledEnds('b', [], 10)).toEqual([]);
    });

    test('reports whether a call is queued, claimed or ended', async () => {
      const call = acceptedCall();
      expect(await ledger.ownership(call.callId)).toBeUndefined();
      await ledger.accept(call, {});
      expect(await ledger.ownership(call.callId)).toEqual({ phase: 'queued', call });
      await take(call.callId, 'node-1');
      expect(await ledger.ownership(call.callId)).toEqual({
        phase: 'claimed',
        ownerId: 'node-1',
      });
      await append('node-1', call, { ending: { event: endEventOf(call) } });
      expect(await ledger.ownership(call.callId)).toEqual({ phase: 'ended' });
    });

    test('decrypts the stored headers for the notifier', async () => {
      const [call, plain] = [acceptedCall(), acceptedCall()];
      const notifyHeaders = { authorization: 'Bearer sesame' };
      await ledger.accept(call, { notifyHeaders });
      await ledger.accept(plain, {});

      const found = await ledger.callForNotifying([call.callId, plain.callId, 'call-unknown']);

      const common = { appId: 'app-1', accountId: 'account-1', notifyUrl: call.request.notifyUrl };
      expect(Object.fromEntries(found)).toEqual({
        [call.callId]: { ...common, notifyHeaders },
        [plain.callId]: common,
      });
      expect(String((await rowOf(call.callId))?.['notify_headers'])).not.toContain('sesame');
    });

    test.each([
      ['both headers', { traceparent: '00-1-2-01', tracestate: 'congo=1' }],
      ['a traceparent alone', { traceparent: '00-1-2-01' }],
    ])('gives the notifier the trace of the request: %s', async (_, trace) => {
      const call = acceptedCall();
      await ledger.accept({ ...call, request: { ...call.request, ...trace } }, {});

      const found = await ledger.callForNotifying([call.callId]);

      expect(found.get(call.callId)?.trace).toEqual(trace);
    });
  });
});
