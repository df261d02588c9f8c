// One statement stores what happens to calls: events, states, owed notifications and their queues.

import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { CallEvent } from '../../../src/calls/contract/call-event.ts';
import { endEvent, progressOfAccepted } from '../../../src/calls/life/call-events.ts';
import { endOfExpiry } from '../../../src/calls/life/call-outcome.ts';
import type { AppendedStep } from '../../../src/store/outbox/call-appends.ts';
import {
  acceptedCall,
  answeredEventOf,
  endEventOf,
  storedLeg,
} from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig, noon, tomorrow } from '../ledger-rig.ts';

describe.each(databaseKinds)('appending steps, on %s', (kind) => {
  let rig: LedgerRig;
  eachWithLedger(kind, (made) => {
    rig = made;
  });

  const dialogLeg = { ...storedLeg, dialogId: 'dialog-1' };

  async function taken(ownerId = 'a', call = acceptedCall()): Promise<AcceptedCall> {
    await rig.ledger.accept(call, {});
    await rig.take(call.callId, ownerId);
    return call;
  }

  /** Reads the first leg, whose id is the id of its call. */
  async function legOf({ callId }: AcceptedCall): Promise<unknown> {
    const { rows } = await rig.database.pool.query<{ leg: unknown }>(
      'select leg from call_legs where call_id = $1 and leg_id = $1',
      [callId],
    );
    return rows[0]?.leg;
  }

  function answer(call: AcceptedCall) {
    return {
      events: [answeredEventOf(call, noon.toISOString())],
      answeredAt: noon,
      leg: dialogLeg,
    };
  }

  describe('a step', () => {
    test('updates the call and stores its events and notifications, with a queue of this process', async () => {
      const call = await taken();
      const ringing = dtmfEvent(call, 3);

      await rig.append('a', call, { events: [ringing], ringingAt: noon, leg: storedLeg });
      expect(await rig.rowOf(call.callId)).toMatchObject({ state: 'ringing', status: 'ringing' });
      const stored = await rig.append('a', call, answer(call));
      expect(stored).toMatchObject({ kind: 'stored', owed: [{ sequence: 1 }] });
      expect(stored).toHaveProperty('leasedUntil');
      const end = endEventOf(call);
      await rig.append('a', call, { ending: { event: end } });

      expect(await rig.rowOf(call.callId)).toMatchObject({
        state: 'ended',
        status: 'completed',
        outcome: 'completed',
        sip_status: 200,
        ringing_at: noon,
        answered_at: noon,
        ended_at: new Date(end.time),
        reason: '200 OK',
        reason_code: 'Caller-disconnected',
        last_event_sequence: 5,
        last_notification_sequence: 2,
      });
      expect(await legOf(call)).toEqual(dialogLeg);
      expect(await rig.eventsOf(call.callId)).toEqual([
        '1 queued',
        '3 dtmf',
        '4 answered',
        '5 completed',
      ]);
      expect(await rig.notificationsOf(call.callId)).toEqual(['1 answered', '2 completed']);
    });

    test('that ends the call records whether a far end is left in it', async () => {
      const [left, hungUp, swift] = [await taken(), await taken(), await taken()];
      for (const call of [left, hungUp]) await rig.append('a', call, answer(call));
      await rig.append('a', left, { ending: { event: endEventOf(left) } });
      await rig.append('a', hungUp, { ending: { event: endEventOf(hungUp) }, legIsOver: true });
      // The step says that the leg has ended, but also carries the leg. The end wins.
      const { events, leg, answeredAt } = answer(swift);
      const ending = { event: endEventOf(swift) };
      await rig.append('a', swift, { events, answeredAt, leg, ending, legIsOver: true });

      expect(await legOf(left)).toEqual(dialogLeg);
      expect(await legOf(hungUp)).toBeUndefined();
      expect(await legOf(swift)).toBeUndefined();
    });

    test('shares a statement with steps of other calls, and has its own result', async () => {
      const [mine, foreign] = [await taken(), await taken('b')];
      const steps = [mine, foreign].map((call) => ({
        ...{ call, isUntaken: false, isRepeated: false },
        step: answer(call),
      }));

      const results = await rig.appendAll('a', steps);

      expect(results.map(({ kind: result }) => result)).toEqual(['stored', 'not owned']);
      expect(await rig.eventsOf(foreign.callId)).toEqual(['1 queued']);
      expect(await rig.notificationsOf(foreign.callId)).toEqual([]);
    });

    test('shows a machine that was hung up on in the Status column', async () => {
      const call = await taken();
      await rig.append('a', call, {
        ending: { event: endEventOf(call, { machineDetected: true }) },
      });
      expect(await rig.rowOf(call.callId)).toMatchObject({ status: 'machineDetected' });
    });

    test('is stored whatever the far end put into its reason phrase', async () => {
      const call = await taken();
      const event = endEventOf(call, { reason: '486 Busy\u0000 \udfff Here' });
      expect(await rig.append('a', call, { ending: { event } })).toMatchObject({ kind: 'stored' });
    });
  });

  describe('the fence', () => {
    test('a call of another process accepts only a leg that must be hung up', async () => {
      const call = await taken('b');

      expect(await rig.append('a', call, answer(call))).toEqual({ kind: 'not owned' });
      expect(await rig.rowOf(call.callId)).toMatchObject({ answered_at: null });
      expect(await legOf(call)).toEqual(dialogLeg);
      await rig.append('a', call, { leg: storedLeg });
      expect(await legOf(call)).toEqual(dialogLeg);
    });

    test('a call accepts nothing after its end', async () => {
      const call = await taken();
      await rig.append('a', call, { ending: { event: endEventOf(call, { type: 'failed' }) } });

      expect(await rig.append('a', call, answer(call))).toEqual({ kind: 'not owned' });
      expect(await rig.rowOf(call.callId)).toMatchObject({ status: 'failed', answered_at: null });
      expect(await rig.notificationsOf(call.callId)).toEqual(['2 failed']);
    });

    test('an event number that is taken means that another process has the call', async () => {
      const call = await taken();
      await rig.append('a', call, { events: [dtmfEvent(call, 4)] });

      expect(await rig.append('a', call, answer(call))).toEqual({ kind: 'contradicted' });
    });

    test('only one of many processes ends a call that no process has taken', async () => {
      const call = acceptedCall();
      await rig.ledger.accept(call, {});
      const untaken = { isUntaken: true };

      const results = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          rig.append(
            `node-${index}`,
            call,
            { ending: { event: endEventOf(call, { type: 'failed', reason: `${index}` }) } },
            untaken,
          ),
        ),
      );

      const won = results.findIndex(({ kind: result }) => result === 'stored');
      expect(results.filter(({ kind: result }) => result === 'stored')).toHaveLength(1);
      expect(await rig.rowOf(call.callId)).toMatchObject({
        owner_id: `node-${won}`,
        reason: `${won}`,
      });
      expect(await rig.take(call.callId, 'a')).toBe(false);
    });

    test('an answered call does not end as failed', async () => {
      const call = await taken();
      await rig.append('a', call, answer(call));

      const failed = { ending: { event: endEventOf(call, { type: 'failed' }) } };
      expect(await rig.append('a', call, failed)).toEqual({ kind: 'not owned' });
      expect(await rig.notificationsOf(call.callId)).toEqual(['1 answered']);
    });

    test('a process cannot end a call as untaken if another one dials it', async () => {
      const call = await taken('b');
      const step = { ending: { event: endOf(call) } };
      expect(await rig.append('a', call, step, { isUntaken: true })).toEqual({ kind: 'not owned' });
    });
  });

  describe('a repetition after a lost answer', () => {
    test('succeeds, and stores nothing twice', async () => {
      const call = await taken();
      const again = { isRepeated: true };
      await rig.append('a', call, answer(call));

      expect(await rig.append('a', call, answer(call), again)).toMatchObject({ kind: 'stored' });
      const ending = { ending: { event: endEventOf(call) } };
      await rig.append('a', call, ending);
      expect(await rig.append('a', call, ending, again)).toMatchObject({ kind: 'stored' });

      expect(await rig.eventsOf(call.callId)).toEqual(['1 queued', '4 answered', '5 completed']);
      expect(await rig.notificationsOf(call.callId)).toEqual(['1 answered', '2 completed']);
    });

    test('fails with a different end', async () => {
      const call = await taken();
      await rig.append('a', call, { ending: { event: endEventOf(call) } });

      const other = { ending: { event: endEventOf(call, { reason: 'another' }) } };
      expect(await rig.append('a', call, other, { isRepeated: true })).toEqual({
        kind: 'not owned',
      });
    });

    test('succeeds for a call that no process had taken', async () => {
      const call = acceptedCall();
      await rig.ledger.accept(call, {});
      const ending = { ending: { event: endOf(call) } };
      const untaken = { isUntaken: true, isRepeated: true };

      expect(await rig.append('a', call, ending, untaken)).toMatchObject({ kind: 'stored' });
      expect(await rig.append('a', call, ending, untaken)).toMatchObject({ kind: 'stored' });
      expect(await rig.notificationsOf(call.callId)).toEqual(['1 failed']);
    });
  });

  describe('a doubtful answer', () => {
    const doubtful = (call: AcceptedCall) => ({
      ending: {
        event: { ...endOf(call), eventSequence: 4 },
        ifAnswered: [endEventOf(call)],
      },
    });

    const owedBy = (stored: AppendedStep): readonly unknown[] => {
      const owed = stored.kind === 'stored' ? stored.owed : [];
      return owed.map(({ body }) => (JSON.parse(body) as { readonly status: unknown }).status);
    };

    test('that was not stored: the call failed, and no event mentions an answer', async () => {
      const call = await taken();
      const stored = await rig.append('a', call, doubtful(call));

      expect(owedBy(stored)).toEqual(['Failed']);
      expect(await rig.eventsOf(call.callId)).toEqual(['1 queued', '4 failed']);
      expect(await rig.notificationsOf(call.callId)).toEqual(['1 failed']);
      expect(await rig.rowOf(call.callId)).toMatchObject({
        status: 'failed',
        last_event_sequence: 4,
      });
    });

    test('that was stored: the call counts as answered', async () => {
      const call = await taken();
      await rig.append('a', call, answer(call));
      const stored = await rig.append('a', call, doubtful(call));

      // Both possible ends have the same id. The one that is sent must be the one that was stored.
      expect(owedBy(stored)).toEqual(['completed']);
      expect(await rig.eventsOf(call.callId)).toEqual(['1 queued', '4 answered', '5 completed']);
      expect(await rig.notificationsOf(call.callId)).toEqual(['1 answered', '2 completed']);
      expect(await rig.rowOf(call.callId)).toMatchObject({ status: 'completed' });
    });

    test('that arrives later finds the call ended', async () => {
      const call = await taken();
      await rig.append('a', call, doubtful(call));

      expect(await rig.append('a', call, answer(call))).toEqual({ kind: 'not owned' });
      expect(await rig.eventsOf(call.callId)).toEqual(['1 queued', '4 failed']);
    });
  });

  describe('the queue of a call', () => {
    type Queue = { leased_by: string; leased_until: Date; next_attempt_at: Date };
    const queueOf = async ({ callId }: AcceptedCall): Promise<Queue | undefined> => {
      const { rows } = await rig.database.pool.query<Queue>(
        'select leased_by, leased_until, next_attempt_at from notification_lanes where call_id = $1',
        [callId],
      );
      return rows[0];
    };

    test('stays with the process that sends from it, and shows that process the addition', async () => {
      const call = await taken();
      await rig.append('a', call, answer(call));
      const before = await queueOf(call);
      await rig.database.pool.query("update notification_lanes set leased_by = 'b'");

      const stored = await rig.append('a', call, { ending: { event: endEventOf(call) } });

      expect(stored).not.toHaveProperty('leasedUntil');
      const after = await queueOf(call);
      expect(after?.leased_by).toBe('b');
      expect(after?.leased_until.getTime()).toBe((before?.leased_until.getTime() ?? 0) + 1);
    });

    test('keeps the pause before the next attempt', async () => {
      const call = await taken();
      await rig.append('a', call, answer(call));
      await rig.database.pool.query(
        'update notification_lanes set leased_by = null, leased_until = null, next_attempt_at = $1',
        [tomorrow],
      );
      await rig.database.pool.query('update notifications set attempts = 1');

      await rig.append('a', call, { ending: { event: endEventOf(call) } });
      expect((await queueOf(call))?.next_attempt_at).toEqual(tomorrow);
    });

    test('gets nothing more after a 410: later notifications are dead letters', async () => {
      const call = await taken();
      await rig.append('a', call, answer(call));
      await rig.database.pool.query(
        "update notifications set state = 'failed', failure = 'gone'; delete from notification_lanes",
      );

      const stored = await rig.append('a', call, { ending: { event: endEventOf(call) } });
      expect(stored).toMatchObject({ kind: 'stored', owed: [] });
      expect(await queueOf(call)).toBeUndefined();
      const { rows } = await rig.database.pool.query(
        'select state, failure from notifications where call_id = $1 order by sequence',
        [call.callId],
      );
      expect(rows[1]).toEqual({ state: 'failed', failure: 'gone' });
    });

    test('does not exist for a call without a receiver', async () => {
      const { notifyUrl: _none, ...request } = acceptedCall().request;
      const call = await taken('a', acceptedCall({ request }));
      await rig.append('a', call, { ending: { event: endEventOf(call) } });
      expect(await queueOf(call)).toBeUndefined();
    });
  });
});

function endOf(call: AcceptedCall) {
  return endEvent(progressOfAccepted(call), endOfExpiry(noon)).event;
}

function dtmfEvent(call: AcceptedCall, eventSequence: number): CallEvent {
  const { id, time, ...identity } = answeredEventOf(call, noon.toISOString());
  return {
    ...identity,
    time,
    id: id.replace(/\d+$/, String(eventSequence)),
    type: 'dtmf',
    eventSequence,
    data: { digit: '1', source: 'rtp' },
  };
}
