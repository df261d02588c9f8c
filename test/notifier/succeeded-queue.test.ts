// A call's queue that is let go and made anew in the database at once, while this process has not yet heard of the first.

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
  ...{ origin: 'https://a.example', sequence, body: `{"sequence":${sequence}}`, lease: true },
});

/** What the database says when the queue is read. */
function open(pendingInSql: readonly number[]) {
  const now = new Date();
  const day = dayOf(now);
  const sent: string[] = [];
  const settlements: Settlement[] = [];
  let reads = 0;
  let letGo: () => void = () => undefined;
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
    // The first is let go when the test says so.
    settle: async (settlement) => {
      settlements.push(settlement);
      if (settlements.length === 1) await new Promise<void>((resolve) => (letGo = resolve));
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
    letGo: () => letGo(),
  };
}

/** One was sent; its queue is being let go, and the next one is made. */
async function succeeded(pendingInSql: readonly number[]) {
  const world = open(pendingInSql);
  world.store(1);
  await eventually(() => world.settlements.length === 1, 'the first is let go');
  world.store(2);
  // The queue that is made now has found its recipient, and the one before it still there.
  await new Promise((resolve) => setImmediate(resolve));
  expect(world.sent).toEqual(['{"sequence":1}']);
  expect(world.reads()).toBe(0);
  world.letGo();
  await eventually(() => world.dispatcher.queues() === 0, 'nothing is left');
  await world.dispatcher.stop(1_000);
  return world;
}

test('what is in it is sent, once it was read again', async () => {
  const { sent, reads } = await succeeded([2]);

  expect(reads()).toBe(1);
  expect(sent).toEqual(['{"sequence":1}', '{"sequence":2}']);
});

test('what another one has sent meanwhile is not sent again', async () => {
  const { sent, reads } = await succeeded([]);

  expect(reads()).toBe(1);
  expect(sent).toEqual(['{"sequence":1}']);
});
