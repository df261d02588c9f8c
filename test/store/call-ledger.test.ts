import { describe, expect, test } from 'vitest';
import { queuedFact } from '../../src/calls/call-facts.ts';
import type { Owners } from '../../src/calls/ports.ts';
import { createNodeStore } from '../../src/store/nodes.ts';
import { acceptedCall, answeredEvent, endEvent, storedLeg } from '../support/call-records.ts';
import { databaseKinds } from '../support/databases.ts';
import { eachWithLedger, type LedgerRig, noon, tomorrow } from './ledger-rig.ts';

describe.each(databaseKinds)('the ledger of calls on %s', (kind) => {
  let database: LedgerRig['database'];
  let ledger: LedgerRig['ledger'];
  let openLedger: LedgerRig['openLedger'];
  let take: LedgerRig['take'];
  let rowOf: LedgerRig['rowOf'];

  eachWithLedger(kind, (rig) => {
    ({ database, ledger, openLedger, take, rowOf } = rig);
  });

  describe('dialing', () => {
    test('follows a call from the INVITE to the published end', async () => {
      const call = acceptedCall();
      const ringingAt = new Date('2026-03-01T12:00:01.000Z');
      const answeredAt = new Date('2026-03-01T12:00:05.000Z');
      const answered = answeredEvent(call, answeredAt.toISOString());
      const end = endEvent(call);
      await ledger.accept(call, {});
      await take(call.callId, 'node-1');

      await ledger.recordInvite(call.callId, storedLeg);
      await ledger.recordRinging(call.callId, ringingAt);
      expect(await rowOf(call.callId)).toMatchObject({ state: 'ringing', status: 'ringing' });

      const leg = { ...storedLeg, dialogId: 'dialog-1' };
      await ledger.recordAnswer(call.callId, {
        at: answeredAt,
        leg,
        event: answered,
        unpublished: [],
      });
      expect(await rowOf(call.callId)).toMatchObject({ state: 'answered', status: 'answered' });

      expect(await ledger.claimEnd(call.callId, end, [answered])).toBe(true);
      expect(await ledger.endsToPublish('node-1', [], 10)).toEqual([
        { callId: call.callId, events: [answered, end] },
      ]);
      await ledger.markEndPublished(call.callId);
      expect(await ledger.endsToPublish('node-1', [], 10)).toEqual([]);
      expect(await rowOf(call.callId)).toMatchObject({
        state: 'ended',
        status: 'completed',
        outcome: 'completed',
        sip_status: 200,
        owner_id: 'node-1',
        leg,
        dial_started_at: noon,
        ringing_at: ringingAt,
        answered_at: answeredAt,
        answered_event: answered,
        ended_at: new Date(end.time),
        end_event: end,
        end_published_at: noon,
      });
    });

    test('never moves a state backwards when writes arrive late', async () => {
      const call = acceptedCall();
      await ledger.accept(call, {});
      await take(call.callId, 'node-1');
      const leg = { ...storedLeg, dialogId: 'dialog-1' };
      const event = answeredEvent(call, noon.toISOString());
      await ledger.recordAnswer(call.callId, { at: noon, leg, event, unpublished: [] });

      await ledger.recordInvite(call.callId, storedLeg);
      await ledger.recordRinging(call.callId, noon);

      expect(await rowOf(call.callId)).toMatchObject({ state: 'answered', ringing_at: noon, leg });

      await ledger.claimEnd(call.callId, endEvent(call), []);
      await ledger.recordRinging(call.callId, tomorrow);
      expect(await rowOf(call.callId)).toMatchObject({
        state: 'ended',
        status: 'completed',
        ringing_at: noon,
      });
    });

    test('keeps the early dialog of a ringing call until the answer, or an INVITE with credentials', async () => {
      const call = acceptedCall();
      await ledger.accept(call, {});
      await take(call.callId, 'node-1');
      const early = { ...storedLeg, remoteTag: 'far', routeSet: ['sip:127.0.0.1;lr'] };
      const repeated = { ...storedLeg, transactionId: 'repeated with credentials' };

      await ledger.recordRinging(call.callId, noon, early);
      await ledger.recordInvite(call.callId, storedLeg);
      await ledger.recordRinging(call.callId, tomorrow, { ...early, remoteTag: 'another branch' });
      expect(await rowOf(call.callId)).toMatchObject({ ringing_at: noon, leg: early });

      await ledger.recordInvite(call.callId, repeated);
      expect(await rowOf(call.callId)).toMatchObject({ leg: repeated });
    });

    test('takes no early dialog in place of an answered one', async () => {
      const call = acceptedCall();
      await ledger.accept(call, {});
      await take(call.callId, 'node-1');
      const event = answeredEvent(call, noon.toISOString());
      const leg = { ...storedLeg, dialogId: 'dialog-1', remoteTag: 'far' };
      await ledger.recordAnswer(call.callId, { at: noon, leg, event, unpublished: [] });

      await ledger.recordRinging(call.callId, noon, { ...storedLeg, remoteTag: 'early' });

      expect(await rowOf(call.callId)).toMatchObject({ ringing_at: noon, leg });
    });

    test('keeps the leg, but no answer, of a call that had ended before', async () => {
      const call = acceptedCall();
      await ledger.accept(call, {});
      await take(call.callId, 'node-1');
      await ledger.claimEnd(call.callId, endEvent(call, { type: 'failed' }), []);

      const event = answeredEvent(call, noon.toISOString());
      const leg = { ...storedLeg, dialogId: 'dialog-1' };
      await ledger.recordAnswer(call.callId, { at: noon, leg, event, unpublished: [] });
      await ledger.recordInvite(call.callId, storedLeg);

      expect(await rowOf(call.callId)).toMatchObject({
        state: 'ended',
        status: 'failed',
        leg,
        answered_at: null,
        answered_event: null,
      });
    });

    test("keeps the order of one call's writes that are not waited for", async () => {
      const calls = Array.from({ length: 30 }, () => acceptedCall());
      await Promise.all(calls.map((call) => ledger.accept(call, {})));

      await Promise.all(
        calls.flatMap((call) => [
          take(call.callId, 'node-1'),
          ledger.recordInvite(call.callId, storedLeg),
          ledger.recordRinging(call.callId, noon),
          ledger.recordAnswer(call.callId, {
            at: noon,
            leg: { ...storedLeg, dialogId: call.callId },
            event: answeredEvent(call, noon.toISOString()),
            unpublished: [],
          }),
          ledger.claimEnd(call.callId, endEvent(call), []),
          ledger.markEndPublished(call.callId),
        ]),
      );

      for (const call of calls) {
        expect(await rowOf(call.callId)).toMatchObject({
          state: 'ended',
          leg: { dialogId: call.callId },
          ringing_at: noon,
          answered_at: noon,
          end_published_at: noon,
        });
      }
    });
  });

  describe('ending', () => {
    test('is claimed by exactly one of many', async () => {
      const call = acceptedCall();
      await ledger.accept(call, {});
      const other = openLedger();

      const claims = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          (index % 2 === 0 ? ledger : other).claimEnd(
            call.callId,
            endEvent(call, { reason: `${index}` }),
            [],
          ),
        ),
      );

      expect(claims.filter(Boolean)).toHaveLength(1);
      const winner = claims.indexOf(true);
      expect(await ledger.endsToPublish('node-1', [], 10)).toMatchObject([
        { events: [{ data: { reason: `${winner}` } }] },
      ]);
    });

    test('may be claimed again with the very same fact until it is published', async () => {
      const call = acceptedCall();
      const end = endEvent(call);
      await ledger.accept(call, {});
      await ledger.claimEnd(call.callId, end, []);

      expect(await ledger.claimEnd(call.callId, end, [])).toBe(true);
      await ledger.markEndPublished(call.callId);
      expect(await ledger.claimEnd(call.callId, end, [])).toBe(false);
    });

    test('of a queued call fails once somebody dials it', async () => {
      const [queued, dialled] = [acceptedCall(), acceptedCall()];
      await Promise.all([queued, dialled].map((call) => ledger.accept(call, {})));
      await take(dialled.callId, 'node-1');

      const end = { type: 'failed', outcome: 'cancelled' } as const;
      expect(await ledger.claimEndOfQueued(queued.callId, endEvent(queued, end), [])).toBe(true);
      expect(await ledger.claimEndOfQueued(dialled.callId, endEvent(dialled, end), [])).toBe(false);

      expect(await rowOf(queued.callId)).toMatchObject({ status: 'failed', outcome: 'cancelled' });
      expect(await take(queued.callId, 'node-1')).toBe(false);
    });

    test('shows a machine that was hung up on in the Status column', async () => {
      const call = acceptedCall();
      await ledger.accept(call, {});

      await ledger.claimEnd(call.callId, endEvent(call, { machineDetected: true }), []);

      expect((await rowOf(call.callId))?.['status']).toBe('machineDetected');
    });

    test('is stored whatever the far end put into its reason phrase', async () => {
      const call = acceptedCall();
      await ledger.accept(call, {});

      const reason = '486 Busy\u0000 \udfff Here';
      expect(await ledger.claimEnd(call.callId, endEvent(call, { reason }), [])).toBe(true);
    });

    test('of one call that cannot be stored does not fail the others', async () => {
      const calls = Array.from({ length: 9 }, () => acceptedCall());
      await Promise.all(calls.map((call) => ledger.accept(call, {})));

      const results = await Promise.allSettled(
        calls.map((call, index) =>
          // Out of the range of an integer.
          ledger.claimEnd(call.callId, endEvent(call, { sipStatus: index === 4 ? 1e12 : 200 }), []),
        ),
      );

      expect(results.map((result) => result.status === 'fulfilled' && result.value)).toEqual(
        calls.map((_, index) => index !== 4),
      );
    });
  });

  describe('asking', () => {
    test('lists what other owners left unfinished, with what a recovery needs', async () => {
      const [mine, left, answered, queued] = [
        acceptedCall(),
        acceptedCall(),
        acceptedCall(),
        acceptedCall(),
      ];
      const event = answeredEvent(answered, noon.toISOString());
      await Promise.all([mine, left, answered, queued].map((call) => ledger.accept(call, {})));
      await take(mine.callId, 'node-1/new');
      await take(left.callId, 'node-1/old');
      await take(answered.callId, 'node-1/old');
      await ledger.recordRinging(answered.callId, noon);
      await ledger.recordAnswer(answered.callId, {
        at: noon,
        leg: storedLeg,
        event,
        unpublished: [queuedFact(answered)],
      });

      const unfinished = await ledger.unfinished({ except: 'node-1/new' }, 10);

      const common = { ownerId: 'node-1/old', dialStartedAt: noon };
      expect(unfinished).toHaveLength(2);
      expect(unfinished).toContainEqual({ call: left, ...common });
      expect(unfinished).toContainEqual({
        call: answered,
        ...common,
        leg: storedLeg,
        ringingAt: noon,
        answeredAt: noon,
        answeredEvent: event,
        unpublished: [queuedFact(answered)],
      });
      await ledger.claimEnd(left.callId, endEvent(left), []);
      expect(await ledger.unfinished({ except: 'node-1/new' }, 10)).toHaveLength(1);
    });

    test('finds what nodes without a lease left, and what a process took itself', async () => {
      const [lost, alive, own] = [acceptedCall(), acceptedCall(), acceptedCall()];
      await Promise.all([lost, alive, own].map((call) => ledger.accept(call, {})));
      const nodes = (ownerId: string) => createNodeStore(database.pool, ownerId, 60_000);
      await nodes('node-2/lost').register({ nodeId: 'node-2', version: '1' });
      await nodes('node-2/lost').leave();
      await nodes('node-3/alive').register({ nodeId: 'node-3', version: '1' });
      await take(lost.callId, 'node-2/lost');
      await take(alive.callId, 'node-3/alive');
      await take(own.callId, 'node-1/new');
      const callIds = async (owners: Owners) =>
        (await ledger.unfinished(owners, 10)).map(({ call }) => call.callId);

      expect(await callIds({ except: 'node-1/new' })).toEqual([lost.callId]);
      const named = [own.callId, alive.callId, lost.callId];
      expect(await callIds({ ownerId: 'node-1/new', callIds: named })).toEqual([own.callId]);
      expect(await callIds({ ownerId: 'node-1/new', callIds: [] })).toEqual([]);
    });

    test('says where a call is', async () => {
      const call = acceptedCall();
      expect(await ledger.whereabouts(call.callId)).toBeUndefined();
      await ledger.accept(call, {});
      expect(await ledger.whereabouts(call.callId)).toEqual({ phase: 'queued', call });
      await take(call.callId, 'node-1');
      expect(await ledger.whereabouts(call.callId)).toEqual({
        phase: 'claimed',
        ownerId: 'node-1',
      });
      await ledger.claimEnd(call.callId, endEvent(call), []);
      expect(await ledger.whereabouts(call.callId)).toEqual({ phase: 'ended' });
    });

    test('gives the notifier the headers, which are stored encrypted', async () => {
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
  });
});
