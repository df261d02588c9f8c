// Live events reach all followers without a gap, whatever the order of the commits.

import type { PoolClient } from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { createEventLog, type EventLog, type EventScope } from '../../src/live/event-log.ts';
import type { Chunk } from '../../src/live/follower.ts';
import { LiveEvents } from '../../src/live/live-events.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';

const acme: EventScope = { accountId: 'acme', botIds: ['bot-1'] };
const dayMs = 86_400_000;
describe.each(databaseKinds)('live events on %s', (kind) => {
  let live: LiveEvents;
  let reads = 0;
  let wake = (): void => undefined;
  const leaving: AbortController[] = [];

  const database = forSuite(() => openTestDatabase(kind));

  beforeEach(() => {
    reads = 0;
    const log = createEventLog(database);
    const counted: EventLog = {
      ...log,
      read: (after, scope) => {
        reads += scope === undefined ? 1 : 0;
        return log.read(after, scope);
      },
    };
    live = new LiveEvents({
      log: counted,
      logger: silentLogger,
      retentionMs: dayMs,
      // The sweep is too slow to matter, so only `wake` causes reads.
      sweepEveryMs: 60_000,
      watch: (woken) => {
        wake = woken;
        return { stop: () => undefined };
      },
    });
  });

  afterEach(async () => {
    for (const controller of leaving.splice(0)) controller.abort();
    live.stop();
    await database.clear();
  });

  /** Follows in the background, and collects the chunks. */
  function follow(scope: EventScope = acme, cursor?: string) {
    const controller = new AbortController();
    leaving.push(controller);
    const got: Chunk[] = [];
    const how = { signal: controller.signal, onTooSlow: () => controller.abort() };
    const ended = (async () => {
      for await (const chunks of live.follow(scope, cursor, how)) got.push(...chunks);
    })();
    return {
      ended,
      leave: () => controller.abort(),
      ids: () => got.flatMap(({ event }) => (event === undefined ? [] : [event.id])),
      events: () => got.flatMap(({ event }) => event ?? []),
      /** The cursor of the last chunk. */
      cursor: () => /^id: (.*)$/m.exec(got.at(-1)?.text ?? '')?.[1],
      text: () => got.map(({ text }) => text).join(''),
    };
  }

  async function addCall(callId: string, botId = 'bot-1', accountId = 'acme'): Promise<void> {
    await database.pool.query(
      `insert into calls (call_id, sid, conversation_id, account_id, app_id, bot_id, request, state, status, accepted_at, dial_before)
       values ($1, 'sid', 'conversation', $2, 'app', $3, '{}', 'queued', 'queued', now(), now())`,
      [callId, accountId, botId],
    );
  }

  async function addEvent(
    callId: string,
    sequence: number,
    on: Pick<PoolClient, 'query'> = database.pool,
  ): Promise<void> {
    await on.query(
      `insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
       values (coalesce((select day from calls where call_id = $1), now()::date), $1, $2, $3, 'dtmf', now(), '{"digit":"1"}')`,
      [callId, sequence, `${callId}/${sequence}`],
    );
  }

  test('arrive as they are stored, with the ids of their call', async () => {
    await addCall('call-a');
    const follower = follow();
    await eventually(() => follower.cursor() !== undefined, 'the follower has a cursor');

    await addEvent('call-a', 1);
    wake();

    await eventually(() => follower.ids().length === 1, 'the follower has the event');
    expect(follower.events()[0]).toMatchObject({
      id: 'call-a/1',
      type: 'dtmf',
      callId: 'call-a',
      eventSequence: 1,
      botId: 'bot-1',
      accountId: 'acme',
      conversationId: 'conversation',
      data: { digit: '1' },
    });
    expect(follower.text()).toMatch(/\nevent: dtmf\ndata: \{"id":"call-a\/1"/);
  });

  test('of one call begin with its first event', async () => {
    await addCall('call-a');
    await addCall('call-b');
    for (const sequence of [1, 2]) await addEvent('call-a', sequence);
    await addEvent('call-b', 1);

    const follower = follow({ ...acme, callId: 'call-a' });

    await eventually(() => follower.ids().length === 2, 'the follower has two events');
    await addEvent('call-b', 2);
    await addEvent('call-a', 3);
    wake();
    await eventually(() => follower.ids().length === 3, 'the follower has three events');
    expect(follower.ids()).toEqual(['call-a/1', 'call-a/2', 'call-a/3']);
  });

  test('do not reach followers of another account or bot', async () => {
    await addCall('call-a');
    await addCall('call-b', 'bot-2');
    await addCall('call-c', 'bot-1', 'other');
    const follower = follow();
    const all = follow({ accountId: 'acme', botIds: 'all' });
    await eventually(
      () => follower.cursor() !== undefined && all.cursor() !== undefined,
      'both followers have a cursor',
    );

    for (const callId of ['call-c', 'call-b', 'call-a']) await addEvent(callId, 1);
    wake();

    await eventually(
      () => follower.ids().length === 1 && all.ids().length === 2,
      'each follower has the events that it may see',
    );
    expect(follower.ids()).toEqual(['call-a/1']);
    expect(all.ids()).toEqual(['call-b/1', 'call-a/1']);
  });

  test('continue after the cursor, each once, however many there are', async () => {
    await addCall('call-a');
    const first = follow();
    await eventually(() => first.cursor() !== undefined, 'the first follower has a cursor');
    const begin = first.cursor();
    await database.pool.query(`insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
      select day, call_id, n, 'e' || n, 'dtmf', now(), '{"digit":"1"}' from generate_series(1, 1234) n, calls where call_id = 'call-a'`);

    const second = follow(acme, begin);
    await eventually(
      () => second.ids().length === 1_234,
      'the second follower has all 1,234 events',
    );
    second.leave();
    await addEvent('call-a', 1_235);
    const third = follow(acme, second.cursor());

    await eventually(() => third.ids().length > 0, 'the third follower has an event');
    expect(third.ids()).toEqual(['call-a/1235']);
    expect(new Set(second.ids()).size).toBe(1_234);
  });

  test('begin anew with a reset event if the cursor is too old or not valid', async () => {
    const old = Buffer.from(`5.${Date.now() - 2 * dayMs}.1.call-a`).toString('base64url');
    const future = Buffer.from(`999999999999.${Date.now()}.1.call-a`).toString('base64url');
    for (const cursor of [old, future, 'nonsense']) {
      const follower = follow(acme, cursor);
      await eventually(() => follower.text() !== '', 'the follower has the reset event');
      expect(follower.text()).toMatch(/^id: \S+\nevent: reset\ndata: \{"reason":".*"\}\n\n$/);
    }
  });

  test('are read once for ten followers', async () => {
    await addCall('call-a');
    const followers = Array.from({ length: 10 }, () => follow());
    await eventually(
      () => followers.every((follower) => follower.cursor() !== undefined),
      'all ten followers have a cursor',
    );
    await addEvent('call-a', 1);
    wake();
    await eventually(
      () => followers.every((follower) => follower.ids().length === 1),
      'all ten followers have the event',
    );
    const before = reads;

    await addEvent('call-a', 2);
    wake();
    await eventually(
      () => followers.every((follower) => follower.ids().length === 2),
      'all ten followers have the second event',
    );

    // One read, or a second one that was under way. Not ten.
    expect(reads - before).toBeLessThanOrEqual(2);
  });

  test('end for a client that does not read, and continue for the others', async () => {
    await addCall('call-a');
    const controller = new AbortController();
    leaving.push(controller);
    let isTooSlow = false;
    const pieces = live.follow(acme, undefined, {
      signal: controller.signal,
      onTooSlow: () => {
        isTooSlow = true;
      },
    });
    await pieces.next();
    // The follower waits for the first event, takes it, and never reads again.
    const taken = pieces.next();
    const other = follow();
    await eventually(() => other.cursor() !== undefined, 'the other follower has a cursor');
    await addEvent('call-a', 1);
    await eventually(() => {
      wake();
      return other.ids().length === 1;
    }, 'the other follower has the event');
    await taken;

    await database.pool.query(`insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
      select day, call_id, n, 'e' || n, 'dtmf', now(), jsonb_build_object('digit', repeat('1', 3000)) from generate_series(2, 402) n, calls where call_id = 'call-a'`);
    await eventually(() => {
      wake();
      return other.ids().length === 402;
    }, 'the other follower has all 402 events');

    expect(isTooSlow).toBe(true);
    expect((await pieces.next()).done).toBe(true);
  });

  // PGlite has one session, so it cannot run two transactions at a time.
  if (kind === 'postgres')
    test('of a transaction that began first and commits last are not missed', async () => {
      for (const callId of ['call-a', 'call-b', 'call-c']) await addCall(callId);
      const follower = follow();
      await eventually(() => follower.cursor() !== undefined, 'the follower has a cursor');
      const early = await database.pool.connect();
      const late = await database.pool.connect();
      try {
        await early.query('begin');
        await addEvent('call-a', 1, early);
        await late.query('begin');
        await addEvent('call-b', 1, late);
        await late.query('commit');
        // The event is stored but held back: events of the older transaction may still come before
        // it.
        wake();
        const between = follow(acme, follower.cursor());
        await eventually(
          () => between.cursor() !== undefined && reads > 1,
          'the second follower has a cursor after another read',
        );
        expect(follower.ids()).toEqual([]);
        await early.query('commit');
      } finally {
        early.release();
        late.release();
      }
      await addEvent('call-c', 1);
      wake();

      await eventually(() => follower.ids().length === 3, 'the follower has three events');
      expect(follower.ids()).toEqual(['call-a/1', 'call-b/1', 'call-c/1']);
      const again = follow(acme, follower.cursor());
      await addEvent('call-c', 2);
      wake();
      await eventually(() => again.ids().length > 0, 'the follower that came back has an event');
      expect(again.ids()).toEqual(['call-c/2']);
    });
});
