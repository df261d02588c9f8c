// An account whose receivers stall, each in its own way: another account is notified as if it were alone.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import {
  type HostileReceiver,
  type Manner,
  startHostileReceiver,
} from '../support/hostile-receiver.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { createNotifierRig, type NotifierRig, personCall } from './notifier-rig.ts';

const manners: readonly Manner[] = [
  'never answers',
  'never accepts',
  'drips a head',
  'drips a body',
  'resets',
  'answers late',
];
/** Far fewer places than in earnest, and a time-out that none of the stalled attempts comes to. */
const limits = {
  ...{ maxCalls: 60, maxUntrusted: 30, maxActive: 10, maxWaiting: 10 },
  ...{ maxActiveFailing: 2, maxWaitingFailing: 2 },
};
const timeoutMs = 60_000;
const callsPerReceiver = 30;

describe.each(databaseKinds)('receivers of one account that stall, on %s', (kind) => {
  let database: TestDatabase;
  let rig: NotifierRig;
  let receiver: Receiver;
  let stalling: readonly HostileReceiver[];
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(async () => {
    await database.remove();
  });
  beforeEach(async () => {
    rig = createNotifierRig(database);
    receiver = await startReceiver();
    stalling = await Promise.all(manners.map((manner) => startHostileReceiver(manner)));
  });
  afterEach(async () => {
    await Promise.all(stalling.map(({ close }) => close()));
    await rig.stop();
    await receiver.close();
    await database.clear();
  });

  const stallingCall = ({ url }: HostileReceiver) => rig.call(url, { accountId: 'stalling' });

  test.each(['never answered', 'answered before'] as const)(
    'and %s: the notifications of another account arrive, in order',
    async (past) => {
      const notifier = await rig.start({ gates: limits, timeoutMs });
      if (past === 'answered before') {
        await notifier.handle(stalling.map((each) => stallingCall(each).failed()));
        await eventually(async () => (await rig.lanesLeft()) === 0, 'each has answered once');
      }
      for (const each of stalling) each.turn();
      for (const each of stalling) {
        const calls = Array.from({ length: callsPerReceiver }, () => stallingCall(each));
        await notifier.handle(calls.map((call) => call.failed()));
      }

      // Found by the poll, in the order of the database, and given their places at once.
      const stored = Array.from({ length: 5 }, () => rig.call(receiver.url));
      await notifier.handle(stored.flatMap(personCall));
      for (const { identity } of stored) await receiver.untilEnded(identity.callId);
      for (let number = 0; number < 5; number += 1) {
        const call = rig.call(receiver.url);
        for (const event of personCall(call)) await notifier.handle([event]);
        await receiver.untilEnded(call.identity.callId);
        stored.push(call);
      }

      for (const { identity } of stored)
        expect(receiver.of(identity.callId).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
      await eventually(
        () => notifier.queues() <= limits.maxCalls / 2,
        'the account that stalls has its share, not more',
      );
    },
  );
});
