// Attempts that the database does not store at once.

import { beforeEach, describe, expect, test } from 'vitest';
import { AttemptRecords } from '../../src/notifier/attempt-records.ts';
import { type CallQueue, newCallQueue } from '../../src/notifier/call-queue.ts';
import type { AttemptRecord, Settlement } from '../../src/notifier/notification-store.ts';
import { dayOf } from '../../src/store/days.ts';

const startedAt = new Date('2026-11-22T12:00:00Z');
const leaseMs = 30_000;
const call = { callId: 'call-1', day: dayOf(startedAt) };

const attemptOf = (eventId: string): AttemptRecord => ({
  ...{ eventId, callId: 'call-1', attempt: 1, startedAt, durationMs: 5, at: startedAt },
  ...{ responseStatus: 200, state: 'delivered', refused: false },
});

let now: number;
let queue: CallQueue;
/** Errors of the next settlements. Once it is empty, settlements are stored. */
let failures: unknown[];
let stored: Settlement[];
let asked: number;
let records: AttemptRecords;

beforeEach(() => {
  now = startedAt.getTime();
  const leasedUntil = now + leaseMs;
  queue = newCallQueue({ ...call, leasedUntil, pending: [] }, undefined);
  failures = [];
  stored = [];
  asked = 0;
  records = new AttemptRecords({
    store: {
      settle: async (settlement) => {
        asked += 1;
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        stored.push(settlement);
        return settlement.queue !== 'keep';
      },
    },
    now: () => new Date(now),
  });
});

describe('an attempt that the database does not store', () => {
  test('is stored again while the lease, or its renewal, is held', async () => {
    failures = [new Error('no answer')];
    const settling = records.settle(queue, attemptOf('one'), { kind: 'finish' });
    const known = queue.leasedUntil;
    now += leaseMs;
    queue.leasedUntil = now + leaseMs;

    expect(await settling).toBe(false);
    // The queue is released with the lease that was known at the time of the decision.
    expect(stored).toMatchObject([{ leasedUntil: known, queue: 'finish' }]);
  });

  test('is given up with the lease', async () => {
    failures = [new Error('no answer')];
    now += leaseMs;

    await expect(records.settle(queue, attemptOf('one'), { kind: 'finish' })).rejects.toThrow();
    expect(asked).toBe(1);
  });

  test('is not stored again if the database refuses its data', async () => {
    failures = [Object.assign(new Error('invalid'), { code: '22P02' })];

    await expect(records.settle(queue, attemptOf('one'), { kind: 'finish' })).rejects.toThrow();
    expect(asked).toBe(1);
  });

  test('does not prevent the storing of the next attempt', async () => {
    failures = [Object.assign(new Error('invalid'), { code: '22P02' })];
    records.storeSoon(queue, attemptOf('one'));

    await expect(records.settle(queue, attemptOf('two'), { kind: 'finish' })).rejects.toThrow();
    expect(stored).toMatchObject([{ attempt: { eventId: 'two' }, queue: 'keep' }]);
  });
});
