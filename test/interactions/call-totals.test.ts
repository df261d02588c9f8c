// Summaries of calls, on both databases.

import { afterEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { AppScope, CallScope } from '../../src/interactions/call-queries.ts';
import { summarizeCalls } from '../../src/interactions/call-totals.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Settling } from '../../src/store/outbox/settling.ts';
import { someIdentity } from '../support/call-events.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';

const ofAccount = { accountId: 'acme', botIds: 'all' } as const;

describe.each(databaseKinds)('a summary on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  afterEach(() => database.clear());

  /** Stores a call that was accepted at `acceptedAt`. With an outcome it has ended. */
  async function store(acceptedAt: string, changes: object = {}): Promise<CallId> {
    const at = new Date(acceptedAt);
    const identity = someIdentity();
    const row = {
      ...{ ...identity, request: acceptedCall().request, trunk: 'carrier', ownerId: 'a' },
      ...{ state: 'queued', status: 'queued', acceptedAt: at, dialBefore: at, ...changes },
    };
    await insertRows(database.pool, 'calls', [row]);
    return identity.callId;
  }

  const ended = (acceptedAt: string, outcome: string, changes: object = {}) =>
    store(acceptedAt, {
      ...{ state: 'ended', status: 'completed', outcome },
      ...{ endedAt: new Date(Date.parse(acceptedAt) + 90_000), ...changes },
    });
  const answered = (acceptedAt: string, verdict: string) =>
    ended(acceptedAt, 'completed', { verdict, answeredAt: new Date(acceptedAt) });

  /** Calls that were over 6 s after their answer, and a moment later. */
  async function shortAndLong(): Promise<readonly CallId[]> {
    const answeredAt = new Date('2026-11-24T12:00:00Z');
    const overAfter = (ms: number) => ({
      answeredAt,
      endedAt: new Date(answeredAt.getTime() + ms),
    });
    return [
      await ended('2026-11-24T12:00:00Z', 'completed', overAfter(6_000)),
      await ended('2026-11-24T12:00:00Z', 'completed', overAfter(6_001)),
    ];
  }

  async function settle(callIds: readonly CallId[]): Promise<void> {
    const settling = new Settling(database.pool, 'a', () => false, silentLogger);
    for (const callId of callIds) settling.settle(callId);
    await settling.stop();
  }

  const sum = (from: string, to: string, scope: CallScope | AppScope = ofAccount, zone = 'UTC') =>
    summarizeCalls(database.pool, scope, {
      ...{
        from: new Date(from),
        to: new Date(to),
        timeZone: zone,
        filter: {},
        withQuarters: false,
      },
    });

  test('counts calls whether they are settled or not, each once', async () => {
    const calls = [
      await answered('2026-11-24T08:00:00Z', 'amd_human_detected'),
      await answered('2026-11-24T08:20:00Z', 'amd_machine_detected'),
      await answered('2026-11-24T09:00:00Z', 'amd_tone_detected'),
      await answered('2026-11-24T09:00:00Z', 'amd_no_speech_detected'),
      await ended('2026-11-24T23:59:59.999Z', 'busy'),
      ...(await shortAndLong()),
    ];
    await store('2026-11-24T10:00:00Z');
    await store('2026-11-24T10:00:00Z', { state: 'answered', answeredAt: new Date() });
    const expected = {
      ...{ accepted: 9, answered: 7, short: 1, people: 1, machines: 2, minutes: 6.2 },
      outcomes: { completed: 6, busy: 1 },
    };
    const day = ['2026-11-24T00:00:00Z', '2026-11-25T00:00:00Z'] as const;

    expect((await sum(...day)).total).toEqual(expected);
    await settle(calls.slice(0, 3));
    expect((await sum(...day)).total).toEqual(expected);
    await settle(calls);
    expect((await sum(...day)).total).toEqual(expected);
    expect((await sum('2026-11-24T08:15:00Z', '2026-11-24T09:00:00Z')).total).toEqual({
      ...{ accepted: 1, answered: 1, short: 0, people: 0, machines: 1, minutes: 1.5 },
      outcomes: { completed: 1 },
    });
  });

  test('is by bot, trunk and day, and has the calls of the scope only', async () => {
    const calls = [
      await ended('2026-11-23T22:59:59.999Z', 'busy', { botId: 'bot-1' }),
      await ended('2026-11-23T23:00:00Z', 'busy', { botId: 'bot-1' }),
      await ended('2026-11-24T12:00:00Z', 'no-answer', { botId: 'bot-2', trunk: null }),
      await ended('2026-11-24T23:00:00Z', 'busy', { botId: 'bot-1' }),
      await ended('2026-11-24T12:00:00Z', 'busy', { accountId: 'rival', botId: 'bot-1' }),
    ];
    await settle(calls);
    await store('2026-11-24T12:00:00Z', { botId: 'bot-2' });
    const period = ['2026-11-22T23:00:00Z', '2026-11-24T23:00:00Z'] as const;

    const summary = await sum(...period, ofAccount, 'Europe/Berlin');

    const accepted = <Counts extends { readonly accepted: number }>(
      counts: readonly Counts[],
      name: (one: Counts) => string | undefined,
    ) => counts.map((one) => [name(one), one.accepted]);
    expect(summary.total.accepted).toBe(4);
    expect(accepted(summary.bots, ({ botId }) => botId)).toEqual([
      ['bot-1', 2],
      ['bot-2', 2],
    ]);
    expect(accepted(summary.trunks, ({ trunk }) => trunk)).toEqual([
      ['carrier', 3],
      [undefined, 1],
    ]);
    expect(accepted(summary.days, ({ day }) => day)).toEqual([
      ['2026-11-23', 1],
      ['2026-11-24', 3],
    ]);
    const ofBot = await sum(...period, { accountId: 'acme', botId: 'bot-2' });
    expect(ofBot.total).toMatchObject({ accepted: 2, outcomes: { 'no-answer': 1 } });
    expect((await sum(...period, { accountId: 'acme', botIds: [] })).total.accepted).toBe(0);
  });

  test.each([
    [{ outcome: 'completed' }, 2],
    [{ status: 'failed' }, 1],
    [{ status: 'queued' }, 1],
    [{ verdict: 'amd_machine_detected' }, 1],
    [{ outcome: 'completed', verdict: 'amd_human_detected' }, 1],
    [{ outcome: 'busy', verdict: 'amd_human_detected' }, 0],
  ] as const)('has only the calls that match %j, settled or not', async (filter, expected) => {
    const calls = [
      await answered('2026-11-24T08:00:00Z', 'amd_human_detected'),
      await answered('2026-11-24T08:20:00Z', 'amd_machine_detected'),
      await ended('2026-11-24T09:00:00Z', 'busy', { status: 'failed' }),
    ];
    await store('2026-11-24T10:00:00Z');
    const period = { from: new Date('2026-11-24T00:00:00Z'), to: new Date('2026-11-25T00:00:00Z') };
    const count = async () => {
      const request = { ...period, timeZone: 'UTC', filter, withQuarters: false };
      return (await summarizeCalls(database.pool, ofAccount, request)).total.accepted;
    };

    expect(await count()).toBe(expected);
    await settle(calls);
    expect(await count()).toBe(expected);
  });

  test('is by quarter of an hour on request, settled or not', async () => {
    await settle([
      await ended('2026-11-24T08:14:59.999Z', 'voicemail-left'),
      await ended('2026-11-24T08:00:00Z', 'transferred', { botId: 'bot-2', trunk: null }),
    ]);
    await store('2026-11-24T08:15:00Z');
    const period = { from: new Date('2026-11-24T00:00:00Z'), to: new Date('2026-11-25T00:00:00Z') };

    const { quarters, total } = await summarizeCalls(database.pool, ofAccount, {
      ...{ ...period, timeZone: 'Asia/Kolkata', filter: {}, withQuarters: true },
    });

    expect(quarters).toMatchObject([
      {
        ...{ from: '2026-11-24T08:00:00.000Z', accepted: 2 },
        outcomes: { 'voicemail-left': 1, transferred: 1 },
      },
      { from: '2026-11-24T08:15:00.000Z', accepted: 1, outcomes: {} },
    ]);
    expect(total.accepted).toBe(3);
  });
});
