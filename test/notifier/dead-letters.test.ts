// Notifications that are given up, because of a 410 or of their age. They are listed and replayed.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { createDeadLetters, type DeadLetters } from '../../src/notifier/dead-letters.ts';
import type { eventBuilder } from '../support/call-events.ts';
import { insertCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { glance, type Receiver, signatureIsRight, startReceiver } from '../support/receiver.ts';
import { createNotifierRig, type NotifierRig, personCall, quickSchedule } from './notifier-rig.ts';

const scope = { accountId: 'acme', botId: 'st-bot' };
const stranger = { accountId: 'others', botId: 'st-bot' };

/** The notifier looks only when it is woken. */
const resting = { maxRestMs: 1_000_000 };

describe.each(databaseKinds)('dead letters, on %s', (kind) => {
  let rig: NotifierRig;
  let receiver: Receiver;
  const database = forSuite(() => openTestDatabase(kind));
  const deadLetters = forSuite(() =>
    createDeadLetters(database, { now: () => new Date() }, () => rig.wake()),
  );
  beforeEach(async () => {
    rig = createNotifierRig(database);
    receiver = await startReceiver();
  });
  afterEach(async () => {
    await rig.stop();
    await receiver.close();
    await database.clear();
  });

  const nothingIsOwed = () =>
    eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
  const failures = async () => {
    const { rows } = await database.pool.query<{ sequence: number; failure: string | null }>(
      'select sequence, failure from notifications order by call_id, sequence',
    );
    return rows.map(({ failure }) => failure);
  };
  const listed = async (
    filter: Partial<Parameters<DeadLetters['list']>[1]> = {},
    of: Parameters<DeadLetters['list']>[0] = scope,
  ) => {
    const page = await deadLetters.list(of, { limit: 50, ...filter });
    if (page === 'bad-cursor') throw new Error('bad cursor');
    return page;
  };
  /** The stored call says to which account a notification belongs, and where it goes. */
  async function storeCall({ identity }: ReturnType<typeof eventBuilder>, notifyUrl: string) {
    await database.pool.query(
      `insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, notify_url, state, status,
         accepted_at, dial_before)
       values ($1, $2, $3, $4, $5, $6, '{}', $7, 'ended', 'completed', now(), now())`,
      [
        identity.callId,
        identity.sid,
        identity.conversationId,
        identity.accountId,
        identity.appId,
        identity.botId,
        notifyUrl,
      ],
    );
  }

  test('410 stops the waiting and the later notifications of a call', async () => {
    const notifier = await rig.start(resting);
    const call = rig.call(receiver.url);
    const events = personCall(call);
    receiver.answerWith((body) => (body.sequence === 2 ? 410 : 200));

    await notifier.handle(events.slice(0, 5));
    await nothingIsOwed();
    await notifier.handle(events.slice(5));
    const other = rig.call(receiver.url);
    receiver.answerWith(() => 200);
    await notifier.handle([other.failed()]);
    await receiver.untilEnded(other.identity.callId);

    expect(receiver.received.map(({ body, status }) => [body.sequence, status])).toEqual([
      [1, 200],
      [2, 410],
      [1, 200],
    ]);
    const page = await listed({ callId: call.identity.callId });
    expect(page.deadLetters.map(({ sequence, failure }) => [sequence, failure])).toEqual([
      [4, 'gone'],
      [3, 'gone'],
      [2, 'gone'],
    ]);
    expect(page.deadLetters.at(-1)).toMatchObject({ attempts: 1, lastStatus: 410 });
  });

  test('of an app are listed page by page, for its own bots only', async () => {
    const stored = [
      ['evt-1', 'acme', 'st-a'],
      ['evt-2', 'acme', 'st-b'],
      ['evt-3', 'acme', 'st-a'],
      ['evt-4', 'others', 'st-a'],
    ] as const;
    const callId = 'call-1' as CallId;
    await insertCall(database.pool, { callId });
    await database.pool.query(
      `insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
       select day, call_id, 1, '', 'dialing', now(), '{}' from calls`,
    );
    for (const [index, [eventId, accountId, botId]] of stored.entries()) {
      await database.pool.query(
        `insert into notifications (day, event_id, call_id, account_id, bot_id, sequence, event_sequence, state, attempts,
           created_at, failed_at, failure)
         select day, $1, call_id, $2, $3, $4, 1, 'failed', 1, now(), $5, 'gone' from calls`,
        [eventId, accountId, botId, index, new Date(Date.UTC(2026, 10, 20, 8, 0, index))],
      );
    }
    const idsOf = async (botIds: readonly string[] | 'all', filter: object = {}) => {
      const page = await listed(filter, { accountId: 'acme', botIds });
      return page.deadLetters.map(({ eventId }) => eventId);
    };

    expect(await idsOf('all')).toEqual(['evt-3', 'evt-2', 'evt-1']);
    expect(await idsOf(['st-a'])).toEqual(['evt-3', 'evt-1']);
    expect(await idsOf([])).toEqual([]);
    expect(await idsOf('all', { failure: 'expired' })).toEqual([]);
    const first = await listed({ limit: 2 }, { accountId: 'acme', botIds: 'all' });
    expect(await idsOf('all', { cursor: first.nextCursor ?? '' })).toEqual(['evt-1']);
  });

  test('expired notifications are listed to their account only, newest first, page by page', async () => {
    await rig.stop();
    rig = createNotifierRig(database, { ...quickSchedule, giveUpAfterMs: 1 });
    const notifier = await rig.start(resting);
    receiver.answerWith(() => 500);
    const calls = [rig.call(receiver.url), rig.call(receiver.url), rig.call(receiver.url)];
    for (const call of calls) {
      await notifier.handle([call.answered(), call.completed()]);
      await nothingIsOwed();
    }

    expect(await failures()).toEqual(Array(6).fill('expired'));
    const first = await listed({ limit: 4 });
    const second = await listed({ limit: 4, cursor: first.nextCursor ?? '' });
    expect([first.deadLetters.length, second.deadLetters.length]).toEqual([4, 2]);
    expect(second.nextCursor).toBeUndefined();
    const all = [...first.deadLetters, ...second.deadLetters];
    expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(6);
    expect(all.map(({ failedAt }) => failedAt)).toEqual(
      all.map(({ failedAt }) => failedAt).toSorted((a, b) => b.localeCompare(a)),
    );
    expect((await listed({}, stranger)).deadLetters).toEqual([]);
    expect((await listed({ failedTo: new Date(0) })).deadLetters).toEqual([]);
    expect(await deadLetters.list(scope, { limit: 4, cursor: 'nonsense' })).toBe('bad-cursor');
  });

  test('a call is replayed in order, with the same ids and bodies and new signatures, and logged', async () => {
    const notifier = await rig.start(resting);
    const call = rig.call(receiver.url);
    await storeCall(call, receiver.url);
    receiver.answerWith(() => 410);
    await notifier.handle(personCall(call));
    await nothingIsOwed();
    const before = new Map(
      (await listed()).deadLetters.map((letter) => [letter.eventId, JSON.stringify(letter.body)]),
    );
    receiver.received.length = 0;

    receiver.answerWith((body) =>
      receiver.received.length === 0 && body.sequence === 1 ? 503 : 200,
    );
    const { callId } = call.identity;
    const replayed = await deadLetters.replay(scope, 'app-1', { callId });
    const again = await deadLetters.replay(scope, 'app-1', { callId });
    const bodies = await receiver.untilEnded(callId);
    await nothingIsOwed();
    const later = await deadLetters.replay(scope, 'app-1', { callId });

    expect([replayed.count, again.count, later.count]).toEqual([4, 0, 0]);
    expect(glance(bodies)).toEqual(['Answered', 'amd_human_detected', 'amd_stopped', 'completed']);
    // The schedule begins anew, so a failed attempt is followed by another one.
    expect(receiver.received.map(({ status }) => status)).toEqual([503, 200, 200, 200, 200]);
    for (const received of receiver.received) {
      expect(signatureIsRight(received, rig.secret)).toBe(true);
      expect(before.get(received.body.eventId)).toBe(received.rawBody);
    }
    const log = await database.pool.query<{ event_id: string; replayed_by: string }>(
      'select event_id, replayed_by from notification_replays',
    );
    expect(new Set(log.rows.map((row) => row.event_id))).toEqual(new Set(before.keys()));
    expect(new Set(log.rows.map((row) => row.replayed_by))).toEqual(new Set(['app-1']));
    expect((await listed()).deadLetters).toEqual([]);
  });

  test('are replayed by id or by time of failure, and never for another account', async () => {
    const notifier = await rig.start({ allowedNetworks: [] });
    const calls = [rig.call(receiver.url), rig.call(receiver.url), rig.call(receiver.url)];
    for (const call of calls) await storeCall(call, receiver.url);
    await notifier.handle(calls.map((call) => call.failed()));
    await nothingIsOwed();
    expect(await failures()).toEqual(Array(3).fill('forbidden'));
    await notifier.stop();
    await rig.start(resting);
    const [first] = (await listed()).deadLetters;
    const eventId = first?.eventId ?? '';

    expect(await deadLetters.replayOne(stranger, 'app-2', eventId)).toBeUndefined();
    expect(await deadLetters.replayOne(scope, 'app-1', 'evt-none')).toBeUndefined();
    expect(await deadLetters.replayOne(scope, 'app-1', eventId)).toEqual({
      eventId,
      callId: first?.callId,
      state: 'pending',
      replayed: true,
    });
    await receiver.untilEnded(first?.callId ?? '');
    await nothingIsOwed();
    expect(await deadLetters.replayOne(scope, 'app-1', eventId)).toMatchObject({
      state: 'delivered',
      replayed: false,
    });

    const span = { failedFrom: new Date(Date.now() - 60_000) };
    expect(await deadLetters.replay(stranger, 'app-2', span)).toEqual({ count: 0, more: false });
    expect(await deadLetters.replay(scope, 'app-1', { failedTo: new Date(0) })).toMatchObject({
      count: 0,
    });
    expect(await deadLetters.replay(scope, 'app-1', span)).toEqual({ count: 2, more: false });
    for (const { identity } of calls) await receiver.untilEnded(identity.callId);
    expect(receiver.received).toHaveLength(3);
  });

  test('a replay reaches a call that is being notified, and keeps the order', async () => {
    const notifier = await rig.start(resting);
    const call = rig.call(receiver.url);
    await storeCall(call, receiver.url);
    receiver.answerWith(() => 410);
    await notifier.handle([call.answered(), call.amd('amd_human_detected')]);
    await nothingIsOwed();

    receiver.answerWith(() => 503);
    const { callId } = call.identity;
    await deadLetters.replay(scope, 'app-1', { callId });
    await notifier.handle([call.completed()]);
    await eventually(() => receiver.received.length > 3, 'attempts are made');
    receiver.answerWith(() => 200);
    const bodies = await receiver.untilEnded(callId);

    expect(bodies.map((body) => body.sequence)).toEqual([1, 2, 3]);
  });
});
