import { describe, expect, test } from 'vitest';
import { queuedEvent } from '../../../src/calls/life/call-events.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { owedFor } from '../../../src/notifier/owed.ts';
import { Settling } from '../../../src/store/outbox/settling.ts';
import { acceptedCall, endEventOf } from '../../support/call-records.ts';
import { databaseKinds } from '../../support/databases.ts';
import { eachWithLedger, type LedgerRig, noon } from '../ledger-rig.ts';

describe.each(databaseKinds)('accepting calls on %s', (kind) => {
  let ledger: LedgerRig['ledger'];
  let openLedger: LedgerRig['openLedger'];
  let rowOf: LedgerRig['rowOf'];
  let queuedCount: LedgerRig['queuedCount'];
  let database: LedgerRig['database'];
  let take: LedgerRig['take'];
  let append: LedgerRig['append'];

  eachWithLedger(kind, (rig) => {
    ({ ledger, openLedger, rowOf, queuedCount, database, take, append } = rig);
  });

  test('stores the call as queued, and hands out the accepted call unchanged', async () => {
    const call = acceptedCall();

    expect(await ledger.accept(call, {})).toEqual({ kind: 'accepted' });

    expect(await rowOf(call.callId)).toMatchObject({
      state: 'queued',
      status: 'queued',
      accepted_at: call.acceptedAt,
      notify_url: call.request.notifyUrl,
      notify_headers: null,
      dial_started_at: null,
    });
    expect(await ledger.ownership(call.callId)).toEqual({ phase: 'queued', call });
  });

  test('stores the notification of the first event with the call, and its queue', async () => {
    const call = acceptedCall();
    const selecting = { ...call, request: { ...call.request, notifyEvents: ['queued'] as const } };
    const other = acceptedCall();
    const queuedNotification = owedFor(selecting, queuedEvent(selecting), () => false);

    await Promise.all([
      ledger.accept(selecting, queuedNotification === undefined ? {} : { queuedNotification }),
      ledger.accept(other, {}),
    ]);

    expect(await rowOf(call.callId)).toMatchObject({ last_notification_sequence: 1 });
    expect(await rowOf(other.callId)).toMatchObject({ last_notification_sequence: null });
    const { rows } = await database.pool.query(
      `select call_id, event_id, sequence, state, event_sequence, origin, leased_by
       from notifications join notification_lanes using (call_id)`,
    );
    expect(rows).toEqual([
      {
        ...{ call_id: call.callId, event_id: queuedEvent(call).id, sequence: 1, state: 'pending' },
        ...{ event_sequence: 1, origin: 'http://127.0.0.1:9', leased_by: null },
      },
    ]);
  });

  test('stores no notification for a request that repeats a key', async () => {
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };
    const queuedNotification = { origin: 'http://127.0.0.1:9' };
    const accept = () => ledger.accept(acceptedCall(), { idempotency, queuedNotification });
    await accept();
    const again = await accept();

    expect(again).toMatchObject({ kind: 'replayed' });
    const { rowCount } = await database.pool.query('select from notifications');
    expect(rowCount).toBe(1);
  });

  test('stores no notification if no call selects its first event', async () => {
    const statements: string[] = [];
    const pool = new Proxy(database.pool, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (name !== 'query') return value;
        return (statement: { readonly text: string }) => {
          statements.push(statement.text);
          return target.query(statement);
        };
      },
    });
    await openLedger({ ...database, pool }).accept(acceptedCall(), {});

    expect(statements).toHaveLength(1);
    expect(statements[0]).not.toMatch(/into notification/);
  });

  test('repeats the first answer for the same key and request', async () => {
    const first = acceptedCall();
    const second = acceptedCall();
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };
    await ledger.accept(first, { idempotency });

    const result = await ledger.accept(second, { idempotency });

    const { sid, callId, conversationId } = first;
    expect(result).toEqual({ kind: 'replayed', answer: { sid, callId, conversationId } });
    expect(await rowOf(second.callId)).toBeUndefined();
    expect((await rowOf(first.callId))?.['idempotency_key']).toBe('key-1');
  });

  test('stores the remarks of an answer, and repeats them', async () => {
    const first = acceptedCall();
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };
    const remarks = {
      target: 'tel:+12025550110',
      bridge: { to: 'tel:+12025550105' },
      ignored: ['language', 'timers.x'],
    };
    await ledger.accept(first, { idempotency, remarks });

    const result = await ledger.accept(acceptedCall(), {
      ...{ idempotency, remarks: { ignored: ['another'] } },
    });

    const { sid, callId, conversationId } = first;
    const answer = { sid, callId, conversationId, ...remarks };
    expect(result).toEqual({ kind: 'replayed', answer });
  });

  test('refuses the same key with another request', async () => {
    await ledger.accept(acceptedCall(), { idempotency: { key: 'key-1', requestHash: 'hash-1' } });

    const result = await ledger.accept(acceptedCall(), {
      idempotency: { key: 'key-1', requestHash: 'hash-2' },
    });

    expect(result).toEqual({ kind: 'conflict' });
    expect(await queuedCount()).toBe(1);
  });

  test('keeps keys apart by app and bot', async () => {
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };

    const results = await Promise.all([
      ledger.accept(acceptedCall(), { idempotency }),
      ledger.accept(acceptedCall({ botId: 'bot-2' }), { idempotency }),
      ledger.accept(acceptedCall({ appId: 'app-2' }), { idempotency }),
    ]);

    expect(results).toEqual(Array(3).fill({ kind: 'accepted' }));
  });

  test('forgets a key 24 hours after the end of its call', async () => {
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };
    const call = acceptedCall({ acceptedAt: noon });
    await ledger.accept(call, { idempotency });
    await take(call.callId, 'a');
    const hoursLater = (from: Date, hours: number): Date =>
      new Date(from.getTime() + hours * 3_600_000);
    const whileOpen = acceptedCall({ acceptedAt: hoursLater(noon, 100) });
    expect(await ledger.accept(whileOpen, { idempotency })).toMatchObject({ kind: 'replayed' });

    const event = { ...endEventOf(call), time: hoursLater(noon, 72).toISOString() };
    await append('a', call, { ending: { event } });
    const settling = new Settling(database.pool, 'a', () => false, silentLogger);
    settling.settle(call.callId);
    await settling.stop();
    const end = hoursLater(noon, 72);
    expect((await rowOf(call.callId))?.['ended_at']).toEqual(end);
    const justBefore = acceptedCall({ acceptedAt: new Date(hoursLater(end, 24).getTime() - 1) });
    const after = acceptedCall({ acceptedAt: hoursLater(end, 24) });

    expect(await ledger.accept(justBefore, { idempotency })).toMatchObject({ kind: 'replayed' });
    expect(await ledger.accept(after, { idempotency })).toEqual({ kind: 'accepted' });
    expect(
      await ledger.accept(acceptedCall({ acceptedAt: after.acceptedAt }), { idempotency }),
    ).toMatchObject({ kind: 'replayed', answer: { callId: after.callId } });
  });

  test('makes exactly one call from 50 simultaneous requests with the same key', async () => {
    // Two ledgers act like two nodes: they do not share their batches.
    const other = openLedger();
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };

    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 === 0 ? ledger : other).accept(acceptedCall(), { idempotency }),
      ),
    );

    expect(results.filter((result) => result.kind === 'accepted')).toHaveLength(1);
    expect(results.filter((result) => result.kind === 'replayed')).toHaveLength(49);
    const answers = results.flatMap((result) =>
      result.kind === 'replayed' ? [result.answer.callId] : [],
    );
    expect(new Set(answers).size).toBe(1);
    expect(await queuedCount()).toBe(1);
  });

  test('accepts many keys in any order from two nodes without a deadlock', async () => {
    const ledgers = [ledger, openLedger()];
    const keys = Array.from({ length: 60 }, (_, index) => `key-${index}`);

    const results = await Promise.all(
      ledgers.flatMap((each, index) =>
        (index === 0 ? keys : keys.toReversed()).map((key) =>
          each.accept(acceptedCall(), { idempotency: { key, requestHash: 'hash' } }),
        ),
      ),
    );

    expect(results.filter((result) => result.kind === 'accepted')).toHaveLength(60);
    expect(results.filter((result) => result.kind === 'replayed')).toHaveLength(60);
  });

  test('refuses one bad call and accepts the others of its batch', async () => {
    const stored = acceptedCall();
    await ledger.accept(stored, {});
    const others = Array.from({ length: 20 }, () => acceptedCall());

    const results = await Promise.all(
      others.toSpliced(10, 0, stored).map((call) => ledger.accept(call, {})),
    );

    expect(results.map(({ kind }) => kind)).toEqual([
      ...Array(10).fill('accepted'),
      'not-stored',
      ...Array(10).fill('accepted'),
    ]);
    expect(await queuedCount()).toBe(21);
  });

  test('stores text that JSON allows and the database refuses', async () => {
    const call = acceptedCall();
    const odd = 'nul \u0000, half a pair \ud83d, backslash \\u0000, quote ", emoji \u{1f600}';
    const request = { ...call.request, metadata: { odd } };

    await ledger.accept({ ...call, request }, {});

    const stored = await ledger.ownership(call.callId);
    expect(stored?.phase === 'queued' && stored.call.request.metadata['odd']).toBe(
      'nul \ufffd, half a pair \ufffd, backslash \\u0000, quote ", emoji \u{1f600}',
    );
  });
});
