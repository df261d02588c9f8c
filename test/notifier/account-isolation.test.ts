// The receivers of one account stall, each in its own way. Another account gets its notifications
// as if it were alone.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import {
  type HostileReceiver,
  type Manner,
  startHostileReceiver,
} from '../support/hostile-receiver.ts';
import { forEachTest, forSuite } from '../support/opened.ts';
import { startReceiver } from '../support/receiver.ts';
import { createNotifierRig, personCall, type TestNode } from './notifier-rig.ts';

const manners: readonly Manner[] = [
  'never answers',
  'never accepts',
  'drips a head',
  'drips a body',
  'resets',
  'answers late',
];
/** Far fewer places than in production, and a time-out that no stalled attempt reaches. */
const limits = {
  ...{ maxCalls: 60, maxUntrusted: 30, maxActive: 10, maxWaiting: 10 },
  ...{ maxActiveFailing: 2, maxWaitingFailing: 2 },
};
const timeoutMs = 60_000;
const callsPerReceiver = 30;
/** Attempts at these receivers stay under way until the time-out. */
const holding: readonly Manner[] = ['never answers', 'drips a head'];

describe.each(databaseKinds)('receivers of one account that stall, on %s', (kind) => {
  let stalling: readonly HostileReceiver[];
  const database = forSuite(() => openTestDatabase(kind));
  const receiver = forEachTest(startReceiver);
  const rig = forEachTest(() => createNotifierRig(database));
  beforeEach(async () => {
    stalling = await Promise.all(manners.map((manner) => startHostileReceiver(manner)));
  });
  afterEach(async () => {
    await Promise.all(stalling.map(({ close }) => close()));
    await database.clear();
  });

  const stallingCalls = (each: HostileReceiver, count: number) =>
    Array.from({ length: count }, () => rig.call(each.url, { accountId: 'stalling' }).failed());

  async function stall(notifier: TestNode) {
    for (const each of stalling) {
      each.turn();
      await notifier.handle(stallingCalls(each, callsPerReceiver));
    }
  }

  async function anotherAccountIsNotified(notifier: TestNode) {
    // Sends some events at once, and others one after the other.
    const together = Array.from({ length: 5 }, () => rig.call(receiver.url));
    await notifier.handle(together.flatMap(personCall));
    const alone = rig.call(receiver.url);
    for (const event of personCall(alone)) await notifier.handle([event]);
    for (const { identity } of [...together, alone]) {
      const notified = await receiver.untilEnded(identity.callId);
      expect(notified.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    }
  }

  const thatAccountHasItsShare = (notifier: TestNode) =>
    eventually(() => notifier.queues() <= limits.maxCalls / 2, 'half of the places, not more');

  test('delay no notification of another account, if they never answered', async () => {
    const notifier = await rig.start({ gates: limits, timeoutMs });
    await stall(notifier);
    await anotherAccountIsNotified(notifier);
    await thatAccountHasItsShare(notifier);
    for (const each of stalling) {
      if (holding.includes(each.manner))
        expect(each.asked(), each.manner).toBeLessThanOrEqual(limits.maxActive);
    }
  });

  test('delay no notification of another account, if they answered before', async () => {
    const notifier = await rig.start({ gates: limits, timeoutMs });
    await notifier.handle(stalling.flatMap((each) => stallingCalls(each, 1)));
    await eventually(async () => (await rig.lanesLeft()) === 0, 'each has answered once');
    await stall(notifier);
    await anotherAccountIsNotified(notifier);
    await thatAccountHasItsShare(notifier);
  });

  test('get a bounded number of attempts, if they stall repeatedly', async () => {
    const notifier = await rig.start({ gates: limits, timeoutMs: 500 });
    await stall(notifier);
    await anotherAccountIsNotified(notifier);
    await thatAccountHasItsShare(notifier);
    // No receiver has more connections than attempts at once, however they end.
    await eventually(
      () => stalling.every(({ sockets }) => !(sockets() > limits.maxActive)),
      'no receiver has more connections than attempts at once',
    );
  });
});
