// What the console shows operators beside the summaries: calls that rules hold, totals of trunks,
// and verdicts, on both databases.

import { afterEach, describe, expect, test } from 'vitest';
import { detectionSummary } from '../../src/interactions/detection-summary.ts';
import { heldCalls } from '../../src/interactions/held-calls.ts';
import { trunkTotals } from '../../src/interactions/trunk-totals.ts';
import { someIdentity } from '../support/call-events.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';

const now = new Date('2026-11-24T08:20:00Z');
const { request } = acceptedCall();

describe.each(databaseKinds)('operators’ figures on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  afterEach(() => database.clear());

  async function store(...calls: readonly object[]): Promise<readonly string[]> {
    const rows = calls.map((changes) => ({
      ...{ ...someIdentity(), request, state: 'queued', status: 'queued', acceptedAt: now },
      ...{ dialBefore: now, ownerId: 'a', lastEventSequence: 1, ...changes },
    }));
    await insertRows(database.pool, 'calls', rows);
    return rows.map(({ callId }) => callId);
  }

  test('held calls are counted by rule, for the bots of the app', async () => {
    const held = (waitsFor: string, notBefore: string, changes = {}) => ({
      ...{ waitsFor, notBefore, ...changes },
    });
    await store(
      held('hours', '2026-11-24T17:00:00Z'),
      held('hours', '2026-11-24T16:00:00Z', { botId: 'bot-2' }),
      held('rest', '2026-11-25T00:00:00Z'),
      held('rest', '2026-11-25T00:00:00Z', { accountId: 'rival' }),
      {},
    );
    const { accountId } = someIdentity();

    expect(await heldCalls(database.pool, { accountId, botIds: 'all' })).toEqual([
      { rule: 'hours', calls: 2, nextAt: '2026-11-24T16:00:00.000Z' },
      { rule: 'rest', calls: 1, nextAt: '2026-11-25T00:00:00.000Z' },
    ]);
    expect(await heldCalls(database.pool, { accountId, botIds: ['bot-2'] })).toEqual([
      { rule: 'hours', calls: 1, nextAt: '2026-11-24T16:00:00.000Z' },
    ]);
    expect(await heldCalls(database.pool, { accountId, botIds: [] })).toEqual([]);
  });

  test('totals of trunks are of 24 hours, and of the same hours a week before', async () => {
    const total = (slot: string, changes = {}) => ({
      ...{ accountId: 'acme', outcome: 'completed', status: 'completed', verdict: '', slot },
      ...{ botId: 'bot-1', trunk: 'carrier', calls: 4, answered: 3, short: 1, talkMs: 0 },
      ...changes,
    });
    await insertRows(database.pool, 'call_totals', [
      total('2026-11-23T08:45:00Z', { calls: 100 }),
      total('2026-11-23T09:00:00Z'),
      total('2026-11-24T08:15:00Z', { accountId: 'rival', outcome: 'blocked', answered: 0 }),
      total('2026-11-24T08:15:00Z', { trunk: 'other' }),
      total('2026-11-24T08:15:00Z', { outcome: 'expired', answered: 0, short: 0 }),
      total('2026-11-17T08:15:00Z', { calls: 10 }),
      total('2026-11-17T08:30:00Z', { calls: 100 }),
    ]);

    const { from, trunks } = await trunkTotals(database.pool, now);

    expect(from).toBe('2026-11-23T09:00:00.000Z');
    expect(trunks.map(({ trunk }) => trunk)).toEqual(['carrier', 'other']);
    expect(trunks[0]).toMatchObject({
      total: { accepted: 8, answered: 3, short: 2, blocked: 4 },
      before: { accepted: 10, answered: 3, short: 1, blocked: 0 },
    });
    const accepted = trunks[0]?.hours.map((hour) => hour.accepted);
    expect(accepted).toEqual([4, ...Array(22).fill(0), 4]);
  });

  test('a detection has its first and its final verdict', async () => {
    const answered = { answeredAt: now, request: { ...request, machineDetection: 'detect' } };
    const [corrected, kept, undecided] = await store(
      { ...answered, outcome: 'machine' },
      { ...answered, accountId: 'rival' },
      answered,
    );
    const states = (callId: string | undefined, eventSequence: number, amd: object) => ({
      ...{ day: '2026-11-24', callId, eventSequence, eventId: `${callId}-${eventSequence}` },
      ...{ type: 'amd', time: now, data: { amd: { elapsedMs: 900, ...amd } } },
      transactionId: 1,
    });
    const person = { event: 'amd_human_detected', reason: 'short-greeting', confidence: 0.9 };
    const corrects = { reason: 'tone', corrects: 'amd_human_detected' };
    await insertRows(database.pool, 'call_events', [
      states(corrected, 1, person),
      states(corrected, 2, { event: 'amd_machine_detected', ...corrects }),
      states(kept, 1, person),
      states(undecided, 1, { event: 'amd_stopped', reason: 'call-ended' }),
    ]);

    const { calls, verdicts } = await detectionSummary(database.pool, now, 'acme');

    expect(calls).toBe(3);
    const first = { ...person, elapsedMs: 900 };
    expect(verdicts).toHaveLength(2);
    expect(verdicts).toContainEqual({
      ...{ ...first, callId: corrected, isOwn: true, outcome: 'machine' },
      final: 'amd_machine_detected',
    });
    expect(verdicts).toContainEqual({
      ...{ ...first, callId: kept, isOwn: false, final: 'amd_human_detected' },
    });
  });
});
