// Reads calls back, on both databases.

import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { notificationOf } from '../../src/calls/contract/event-table.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { AppScope, CallScope } from '../../src/interactions/call-queries.ts';
import { createCallQueries } from '../../src/interactions/stored-calls.ts';
import { dayOf } from '../../src/store/days.ts';
import { eventBuilder, someIdentity } from '../support/call-events.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';

const scope = { accountId: 'acme', botId: 'st-bot' };

function row(changes: object = {}) {
  const { request } = acceptedCall();
  return {
    ...someIdentity(),
    request,
    notifyUrl: null,
    state: 'queued',
    status: 'queued',
    acceptedAt: new Date('2026-11-20T08:00:00.000Z'),
    dialBefore: new Date('2026-11-20T08:05:00.000Z'),
    ...changes,
  };
}

describe.each(databaseKinds)('call queries on %s', (kind) => {
  const queries = () => createCallQueries(database);
  const insert = async (...rows: readonly object[]) => {
    await insertRows(database.pool, 'calls', rows);
  };
  const write = async (events: readonly CallEvent[]) => {
    const { rows: calls } = await database.pool.query<{ call_id: string; accepted_at: Date }>(
      'select call_id, accepted_at from calls',
    );
    const acceptedAt = new Map(calls.map((call) => [call.call_id, call.accepted_at]));
    const rows = events.map(({ callId, eventSequence, id: eventId, type, time, data }) => ({
      day: dayOf(acceptedAt.get(callId) ?? new Date(0)),
      ...{ callId, eventSequence, eventId, type, time, data },
    }));
    await insertRows(database.pool, 'call_events', rows);
  };

  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(async () => {
    await database.pool.query(
      'truncate calls, call_events, notifications, notification_lanes, delivery_attempts',
    );
  });

  test('a summary has the request, the times and the end of the call', async () => {
    const builder = eventBuilder();
    await insert(
      row({
        ...builder.identity,
        state: 'ended',
        status: 'failed',
        ringingAt: new Date('2026-11-20T08:00:02.000Z'),
        endedAt: new Date('2026-11-20T08:00:03.000Z'),
        ...{ reason: '486 Busy Here', reasonCode: 'Busy here' },
        outcome: 'busy',
        sipStatus: 486,
      }),
    );

    const page = await queries().list(scope, { limit: 10 });

    expect(page).toEqual({
      searched: {},
      calls: [
        {
          callId: builder.identity.callId,
          sid: builder.identity.sid,
          conversationId: builder.identity.conversationId,
          botId: 'st-bot',
          state: 'ended',
          status: 'failed',
          target: 'tel:+14155550100',
          caller: '14155550199',
          trunk: 'sandbox',
          machineDetection: 'detect',
          outcome: 'busy',
          fault: 'callee',
          sipStatus: 486,
          reason: '486 Busy Here',
          reasonCode: 'Busy here',
          acceptedAt: '2026-11-20T08:00:00.000Z',
          ringingAt: '2026-11-20T08:00:02.000Z',
          endedAt: '2026-11-20T08:00:03.000Z',
        },
      ],
    });
  });

  test('a verdict comes from the end of the call, and before that from the last verdict event', async () => {
    const at = new Date('2026-11-20T08:00:02.000Z');
    const [up, over, undetected] = [eventBuilder(), eventBuilder(), eventBuilder()];
    await insert(
      row({ ...up.identity, state: 'answered', status: 'answered', answeredAt: at }),
      row({
        ...{ ...over.identity, state: 'ended', status: 'completed', answeredAt: at, endedAt: at },
        verdict: 'amd_human_detected',
      }),
      row({ ...undetected.identity, state: 'answered', status: 'answered', answeredAt: at }),
    );
    await write([up.amd('amd_human_detected')]);
    const verdictOf = async (callId: string) => {
      const { verdict } = (await queries().details(scope, callId as CallId)) ?? {};
      const page = await queries().list(scope, { limit: 10 });
      const listed = page === 'bad-cursor' ? [] : page.calls;
      expect(listed.find((call) => call.callId === callId)?.verdict).toBe(verdict);
      return verdict;
    };

    expect(await verdictOf(up.identity.callId)).toBe('amd_human_detected');
    // A beep takes the verdict back. The end of detection decides nothing.
    await write([up.amd('amd_machine_detected'), up.amd('amd_stopped')]);
    expect(await verdictOf(up.identity.callId)).toBe('amd_machine_detected');
    expect(await verdictOf(over.identity.callId)).toBe('amd_human_detected');
    expect(await verdictOf(undetected.identity.callId)).toBeUndefined();
  });

  test('reason and beep come from the events of the call', async () => {
    const at = new Date('2026-11-20T08:00:02.000Z');
    const [up, over] = [eventBuilder(), eventBuilder()];
    const heard = (
      [
        { event: 'amd_human_detected', reason: 'short-greeting', elapsedMs: 900 },
        { event: 'amd_tone_detected', reason: 'beep', elapsedMs: 2_900 },
        { event: 'amd_stopped', reason: 'tone', elapsedMs: 2_900 },
      ] as const
    ).map((amd) => {
      const event = over.amd(amd.event);
      return { ...event, data: { ...event.data, amd } } as CallEvent;
    });
    await insert(
      row({ ...up.identity, state: 'answered', status: 'answered', answeredAt: at }),
      row({
        ...{ ...over.identity, state: 'ended', status: 'completed', answeredAt: at, endedAt: at },
        verdict: 'amd_tone_detected',
      }),
    );
    await write([up.amd('amd_machine_detected'), ...heard]);

    const one = async (callId: string) => await queries().details(scope, callId as CallId);
    expect(await one(over.identity.callId)).toMatchObject({
      ...{ verdict: 'amd_tone_detected', verdictReason: 'beep', beep: true },
    });
    const whileUp = await one(up.identity.callId);
    expect(whileUp).toMatchObject({
      ...{ verdict: 'amd_machine_detected', verdictReason: 'short-greeting' },
    });
    expect(whileUp?.beep).toBeUndefined();
  });

  test('calls are found by the beginning of their ids, within the scope, and with other filters', async () => {
    const named = (uuid: string, changes: object = {}) =>
      row({ callId: `call-${uuid}`, ...changes });
    const [one, other, stranger] = [
      '0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
      '0d9cffff-ffff-4fff-bfff-ffffffffffff',
      '0d9c4c52-0000-4000-8000-000000000000',
    ];
    await insert(
      named(one),
      named(other, { state: 'ended' }),
      named(stranger, { accountId: 'rival' }),
      named('0d9bffff-ffff-4fff-bfff-ffffffffffff'),
      named('0d9d0000-0000-4000-8000-000000000000'),
      named('10d9c000-0000-4000-8000-000000000000'),
    );
    const found = async (
      start: string,
      filter: object = {},
      seen: CallScope | AppScope = scope,
    ) => {
      const filters = { limit: 10, callIdPrefix: `call-${start}`, ...filter };
      const page = await queries().list(seen, filters);
      return page === 'bad-cursor' ? [] : page.calls.map(({ callId }) => callId.slice(5)).sort();
    };

    for (const seen of [scope, { accountId: 'acme', botIds: 'all' as const }]) {
      expect(await found('0d9c', {}, seen)).toEqual([one, other]);
      expect(await found('0d9c4c52-9', {}, seen)).toEqual([one]);
      expect(await found('0d9c4c52-0', {}, seen)).toEqual([]);
      expect(await found(other, {}, seen)).toEqual([other]);
      expect(await found('0d9c', { state: 'ended' }, seen)).toEqual([other]);
    }
    expect(await found('0d9c', {}, { accountId: 'acme', botIds: ['other'] })).toEqual([]);
  });

  test('a direct sip target is written as a URI', async () => {
    const { request } = acceptedCall();
    const { trunk: _trunk, ...direct } = request;
    await insert(
      row({
        request: { ...direct, target: { kind: 'sip', user: 'bob', host: '127.0.0.1', port: 5080 } },
      }),
    );

    const page = await queries().list(scope, { limit: 10 });

    expect(page).toMatchObject({ calls: [{ target: 'sip:bob@127.0.0.1:5080' }] });
  });

  test('pages keep their place while new calls are accepted, also among equal times', async () => {
    const at = (second: number) => new Date(Date.UTC(2026, 10, 20, 8, 0, second));
    const ids = ['a', 'b', 'c', 'd', 'e'].map((letter) => `call-${letter}`);
    // Three calls of the same millisecond, so that only the id orders them.
    await insert(
      ...ids.map((callId, index) =>
        row({ ...someIdentity(), callId, acceptedAt: at(index < 3 ? 1 : index) }),
      ),
    );
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < 5; page += 1) {
      const result = await queries().list(scope, {
        limit: 2,
        ...(cursor === undefined ? {} : { cursor }),
      });
      if (result === 'bad-cursor') throw new Error('bad cursor');
      seen.push(...result.calls.map((call) => call.callId));
      await insert(row({ ...someIdentity(), acceptedAt: at(30 + page) }));
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }

    expect(seen).toEqual(['call-e', 'call-d', 'call-c', 'call-b', 'call-a']);
  });

  test.each(['', 'nonsense', 'MTIz', Buffer.from("1.call-'; --").toString('base64url')])(
    'an invalid cursor is recognised: %j',
    async (cursor) => {
      expect(await queries().list(scope, { limit: 1, cursor })).toBe('bad-cursor');
    },
  );

  test('filters narrow the list, and combine', async () => {
    const machine = someIdentity();
    await insert(
      row({ state: 'ringing', status: 'ringing' }),
      row({
        ...machine,
        state: 'ended',
        status: 'machineDetected',
        outcome: 'machine',
        idempotencyKey: 'key-1',
        acceptedAt: new Date('2026-11-20T09:00:00.000Z'),
      }),
    );
    const find = async (filter: object) => {
      const page = await queries().list(scope, { limit: 10, ...filter });
      return page === 'bad-cursor' ? page : page.calls.map((call) => call.status);
    };

    expect(await find({ status: 'machineDetected' })).toEqual(['machineDetected']);
    expect(await find({ state: 'ringing' })).toEqual(['ringing']);
    expect(await find({ outcome: 'machine' })).toEqual(['machineDetected']);
    expect(await find({ idempotencyKey: 'key-1' })).toEqual(['machineDetected']);
    expect(await find({ idempotencyKey: 'key-2' })).toEqual([]);
    expect(await find({ acceptedFrom: new Date('2026-11-20T09:00:00.000Z') })).toEqual([
      'machineDetected',
    ]);
    expect(await find({ acceptedTo: new Date('2026-11-20T09:00:00.000Z') })).toEqual(['ringing']);
    expect(await find({ state: 'ended', outcome: 'busy' })).toEqual([]);
  });

  test('for an app: the calls of its bots in one list, page by page, and no other calls', async () => {
    const at = (second: number) => new Date(Date.UTC(2026, 10, 20, 8, 0, second));
    const bots = ['st-a', 'st-b', 'st-a', 'st-c', 'st-b'];
    const own = bots.map((botId, index) =>
      row({ ...someIdentity({ botId }), callId: `call-${index}`, acceptedAt: at(index) }),
    );
    const foreign = row(someIdentity({ accountId: 'other', botId: 'st-a' }));
    await insert(...own, foreign);
    const list = async (botIds: readonly string[] | 'all', filter: object = {}) => {
      const page = await queries().list({ accountId: 'acme', botIds }, { limit: 10, ...filter });
      return page === 'bad-cursor' ? page : page.calls.map(({ callId }) => callId);
    };

    expect(await list('all')).toEqual(['call-4', 'call-3', 'call-2', 'call-1', 'call-0']);
    expect(await list(['st-a', 'st-b', 'st-none'])).toEqual([
      ...['call-4', 'call-2', 'call-1', 'call-0'],
    ]);
    expect(await list([])).toEqual([]);
    expect(await list('all', { acceptedFrom: at(2), acceptedTo: at(4) })).toEqual([
      ...['call-3', 'call-2'],
    ]);
    const scopeOfAll = { accountId: 'acme', botIds: 'all' } as const;
    const first = await queries().list(scopeOfAll, { limit: 2 });
    const cursor = first === 'bad-cursor' ? '' : (first.nextCursor ?? '');
    expect(await list('all', { limit: 2, cursor })).toEqual(['call-2', 'call-1']);
  });

  test('for an app: a call is found by its id alone', async () => {
    const call = row(someIdentity({ botId: 'st-b' }));
    await insert(call);
    const find = async (accountId: string, botIds: readonly string[] | 'all') =>
      (await queries().details({ accountId, botIds }, call.callId))?.botId;

    expect(await find('acme', 'all')).toBe('st-b');
    expect(await find('acme', ['st-a', 'st-b'])).toBe('st-b');
    expect(await find('acme', ['st-a'])).toBeUndefined();
    expect(await find('acme', [])).toBeUndefined();
    expect(await find('other', 'all')).toBeUndefined();
  });

  test('calls of another account or bot are not found', async () => {
    const call = row();
    await insert(call);
    const { callId } = call;

    for (const other of [
      { accountId: 'other', botId: 'st-bot' },
      { accountId: 'acme', botId: 'st-other' },
    ]) {
      expect(await queries().list(other, { limit: 10 })).toEqual({ calls: [], searched: {} });
      expect(await queries().details(other, callId)).toBeUndefined();
      expect(await queries().context(other, callId)).toBeUndefined();
      expect(await queries().notifications(other, callId)).toBeUndefined();
    }
    expect(await queries().details(scope, callId)).toMatchObject({ callId });
    expect(await queries().details(scope, `call-${randomUUID()}`)).toBeUndefined();
  });

  test('a queued call has a place among all calls that wait for its trunk, of any account', async () => {
    const dialBefore = new Date(Date.now() + 3_600_000);
    const at = (second: number) => new Date(Date.UTC(2026, 10, 20, 8, 0, second));
    const waiting = (trunk: string | null, second: number, changes: object = {}) =>
      row({ trunk, acceptedAt: at(second), dialBefore, ...changes });
    const ids = ['a', 'b', 'c'].map((letter) => `call-${letter}`);
    // Three calls of the same millisecond, so that only the id orders them.
    const same = ids.map((callId) => waiting('one', 3, { callId }));
    const taken = waiting('one', 1, { state: 'dialing', status: 'dialing', dialStartedAt: at(2) });
    const ended = waiting('one', 1, { state: 'ended', status: 'failed', endedAt: at(2) });
    const expired = waiting('one', 1, { dialBefore: at(2) });
    const ofAnother = waiting('one', 2, { accountId: 'other', botId: 'st-other' });
    const onAnother = [waiting('two', 1), waiting('two', 9)] as const;
    const direct = [waiting(null, 1), waiting(null, 9)] as const;
    await insert(...same, taken, ended, expired, ofAnother, ...onAnother, ...direct);
    const placeOf = async ({ callId }: { callId: string }) =>
      (await queries().details(scope, callId))?.queuePosition;

    expect(await Promise.all(same.map(placeOf))).toEqual([2, 3, 4]);
    expect(await Promise.all([...onAnother, ...direct].map(placeOf))).toEqual([1, 2, 1, 2]);
    const page = await queries().list(scope, { limit: 200 });
    const listed = page === 'bad-cursor' ? [] : page.calls;
    const inList = ({ callId }: { callId: string }) =>
      listed.find((call) => call.callId === callId)?.queuePosition;
    expect([...same, ...onAnother, ...direct].map(inList)).toEqual([2, 3, 4, 1, 2, 1, 2]);
    expect([taken, ended].map(inList)).toEqual([undefined, undefined]);
    expect(await queries().details(scope, taken.callId)).not.toHaveProperty('queuePosition');
    expect(await queries().details(scope, ended.callId)).not.toHaveProperty('queuePosition');
  });

  test('the timeline is in order', async () => {
    const builder = eventBuilder();
    const events = [builder.dialing(), builder.ringing(), builder.answered(), builder.completed()];
    await insert(row({ ...builder.identity, state: 'ended', status: 'completed' }));
    await write([...events].reverse());

    const call = await queries().details(scope, builder.identity.callId);
    expect(call?.timeline.map((entry) => entry.type)).toEqual([
      'dialing',
      'ringing',
      'answered',
      'completed',
    ]);
    expect(call?.timeline[3]).toEqual({
      eventId: events[3]?.id,
      eventSequence: 4,
      type: 'completed',
      time: events[3]?.time,
      data: events[3]?.data,
    });
    expect(call?.metadata).toEqual({ campaign: 'spring' });
  });

  test('a queued call has an empty context with its metadata', async () => {
    const call = row();
    await insert(call);

    expect(await queries().context(scope, call.callId)).toEqual({
      session: { UserSession: { amd: [], amdInfo: {} } },
      metadata: { campaign: 'spring' },
    });
  });

  test('a context is built from the events of the call', async () => {
    const builder = eventBuilder();
    await insert(row(builder.identity));
    await write([builder.dialing(), builder.answered(), builder.amd('amd_human_detected')]);
    const whileUp = await queries().context(scope, builder.identity.callId);

    expect(whileUp).toEqual({
      session: {
        UserSession: {
          amd: ['amd_human_detected'],
          amdInfo: {
            amdEvents: [
              {
                ...{ event: 'amd_human_detected', reason: 'short-greeting' },
                ...{ elapsedMs: 900, words: 2, confidence: 0.9 },
              },
            ],
            ...{ amdRingDurationInMs: 1_500, amdConnectDurationInMs: 2_000 },
          },
        },
      },
      metadata: { campaign: 'spring' },
    });
    await write([builder.completed()]);
    expect(await queries().context(scope, builder.identity.callId)).toEqual(whileUp);
  });

  test('notifications come with their bodies and attempts, in order', async () => {
    const builder = eventBuilder();
    const call = row(builder.identity);
    await insert(call);
    const [answered, completed] = [builder.answered(), builder.completed()];
    await write([answered, completed]);
    const at = new Date('2026-11-20T08:00:05.000Z');
    const ofCall = { callId: call.callId, day: dayOf(at) };
    const common = {
      ...{ ...ofCall, accountId: 'acme', botId: 'st-bot' },
      ...{ attempts: 1, attemptsBefore: 0, createdAt: at },
    };
    await insertRows(database.pool, 'notifications', [
      { ...common, eventId: 'e2', sequence: 2, eventSequence: 2, state: 'pending' },
      {
        ...{ ...common, eventId: 'e1', sequence: 1, eventSequence: 1 },
        ...{ state: 'delivered', deliveredAt: at },
      },
    ]);
    const nextAttemptAt = new Date(at.getTime() + 2_000);
    await insertRows(database.pool, 'notification_lanes', [
      { ...ofCall, accountId: 'acme', origin: 'https://crm.example', nextAttemptAt },
    ]);
    const attempt = { ...ofCall, startedAt: at, durationMs: 12 };
    await insertRows(database.pool, 'delivery_attempts', [
      { ...attempt, eventId: 'e1', attempt: 1, error: 'connection refused', delivered: false },
      { ...attempt, eventId: 'e1', attempt: 2, responseStatus: 204, delivered: true },
    ]);

    expect(await queries().notifications(scope, call.callId)).toEqual([
      {
        eventId: 'e1',
        sequence: 1,
        state: 'delivered',
        createdAt: at.toISOString(),
        deliveredAt: at.toISOString(),
        body: notificationOf(answered),
        attempts: [
          {
            attempt: 1,
            startedAt: at.toISOString(),
            durationMs: 12,
            error: 'connection refused',
            delivered: false,
          },
          {
            attempt: 2,
            startedAt: at.toISOString(),
            durationMs: 12,
            responseStatus: 204,
            delivered: true,
          },
        ],
        replays: [],
      },
      {
        eventId: 'e2',
        sequence: 2,
        state: 'pending',
        createdAt: at.toISOString(),
        nextAttemptAt: nextAttemptAt.toISOString(),
        body: notificationOf(completed),
        attempts: [],
        replays: [],
      },
    ]);
  });
});
