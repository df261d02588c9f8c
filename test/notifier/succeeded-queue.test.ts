// A call's queue is released and created again in the database, while this process has not yet seen
// the release.

import { expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { defaultRetrySchedule } from '../../src/notifier/delivery-rules.ts';
import { NotificationDispatcher } from '../../src/notifier/dispatcher.ts';
import type { NotificationStore, Settlement } from '../../src/notifier/notification-store.ts';
import { dayOf } from '../../src/store/days.ts';
import type { OwedNotification } from '../../src/store/outbox/call-appends.ts';
import { eventually } from '../support/eventually.ts';

const callId = 'call-1';
const leaseMs = 30_000;
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const owed = (sequence: number): OwedNotification => ({
  ...{ eventId: `evt-${sequence}`, callId, appId: 'app-1', accountId: 'account-1', botId: 'bot-1' },
  ...{
    origin: 'https://a.example',
    sequence,
    eventSequence: sequence,
    body: `{"sequence":${sequence}}`,
    lease: true,
  },
});

/** @param pendingInSql what the database has pending when the queue is read */
function open(pendingInSql: readonly number[]) {
  const now = new Date();
  const day = dayOf(now);
  const sent: string[] = [];
  const settlements: Settlement[] = [];
  let reads = 0;
  let release: () => void = () => undefined;
  const store: Partial<NotificationStore> = {
    releaseLost: async () => 0,
    releaseOwn: async () => undefined,
    owesAnything: async () => false,
    claimDue: async () => ({ calls: [], chosen: 0 }),
    claimThese: async () => [],
    loadOne: async () => {
      reads += 1;
      const pending = pendingInSql.map((sequence) => ({
        ...owed(sequence),
        ...{ attempts: 0, attemptsBefore: 0, owedSince: now.getTime() },
      }));
      return { callId, day, leasedUntil: now.getTime() + leaseMs, pending };
    },
    // The first queue is released when the test says so.
    settle: async (settlement) => {
      settlements.push(settlement);
      if (settlements.length === 1) await new Promise<void>((resolve) => (release = resolve));
      return settlement.queue !== 'keep';
    },
  };
  const recipient = { appId: 'app-1', accountId: 'account-1', notifyUrl: 'https://a.example/hook' };
  const dispatcher = new NotificationDispatcher({
    store: store as NotificationStore,
    recipients: async () => new Map([[callId, recipient]]),
    sender: {
      send: async ({ body }) => {
        sent.push(body);
        return { kind: 'response', status: 200 };
      },
      close: async () => undefined,
    },
    mayDeliver: () => true,
    secrets: async () => [secret],
    schedule: defaultRetrySchedule,
    now: () => now,
    random: () => 0.5,
    version: '0.0.0-test',
    logger: silentLogger,
  });
  const store1 = (sequence: number): void =>
    dispatcher.onStored({
      ...{
        callId,
        day,
        owed: [owed(sequence)],
        storedAt: now,
        isNewQueue: true,
        isRepeated: false,
      },
      leasedUntil: new Date(now.getTime() + leaseMs),
    });
  return {
    ...{ sent, settlements, dispatcher, store: store1 },
    reads: () => reads,
    release: () => release(),
  };
}

/** One notification was sent. Its queue is being released, and the next queue is created. */
async function succeeded(pendingInSql: readonly number[]) {
  const world = open(pendingInSql);
  world.store(1);
  await eventually(() => world.settlements.length === 1, 'the first queue is being released');
  world.store(2);
  // The new queue has looked up its recipient, and has found the previous queue still present.
  await new Promise((resolve) => setImmediate(resolve));
  expect(world.sent).toEqual(['{"sequence":1}']);
  expect(world.reads()).toBe(0);
  world.release();
  await eventually(() => world.dispatcher.queues() === 0, 'nothing is left');
  await world.dispatcher.stop(1_000);
  return world;
}

test('the notifications of a successor queue are sent after it was read again', async () => {
  const { sent, reads } = await succeeded([2]);

  expect(reads()).toBe(1);
  expect(sent).toEqual(['{"sequence":1}', '{"sequence":2}']);
});

test('notifications that another process has sent meanwhile are not sent again', async () => {
  const { sent, reads } = await succeeded([]);

  expect(reads()).toBe(1);
  expect(sent).toEqual(['{"sequence":1}']);
});
