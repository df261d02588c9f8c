// A receiver is dead. The others do not notice, memory stays bounded, and everything arrives when
// the receiver has recovered.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultRetrySchedule, type RetrySchedule } from '../../src/notifier/delivery-rules.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { forSuite } from '../support/opened.ts';
import { glance, type Receiver, startReceiver } from '../support/receiver.ts';
import { scaledClock } from '../support/scaled-clock.ts';
import { createNotifierRig, type NotifierRig, personCall } from './notifier-rig.ts';

/** An hour passes in a second and a half. */
const testTimeFactor = 2_400;

/** The default schedule, on the test's clock. */
function inTestTime(schedule: RetrySchedule): RetrySchedule {
  const scaled = (ms: number) => ms / testTimeFactor;
  return {
    ...schedule,
    delaysMs: schedule.delaysMs.map(scaled),
    thenEveryMs: scaled(schedule.thenEveryMs),
    giveUpAfterMs: scaled(schedule.giveUpAfterMs),
  };
}

describe.each(databaseKinds)('dead receivers, on %s', (kind) => {
  let rig: NotifierRig;
  let receiver: Receiver;
  const hanging: Server[] = [];
  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(async () => {
    rig = createNotifierRig(database);
    receiver = await startReceiver();
  });
  afterEach(async () => {
    for (const server of hanging.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
    await rig.stop();
    await receiver.close();
    await database.clear();
  });

  /**
   * Accepts connections and requests, and never answers. `sockets` returns the number of open
   * sockets.
   */
  async function startHanging() {
    let sockets = 0;
    const server = createServer(() => undefined).on('connection', (socket) => {
      sockets += 1;
      socket.once('close', () => {
        sockets -= 1;
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    hanging.push(server);
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/`, sockets: () => sockets };
  }

  test('leave their notifications in the database and do not block others', async () => {
    const dead = await startHanging();
    const notifier = await rig.start();
    for (let batch = 0; batch < 5; batch += 1) {
      const calls = Array.from({ length: 300 }, () => rig.call(dead.url));
      await notifier.handle(calls.map((call) => call.failed()));
    }

    const queuesThen = notifier.queues();
    const calls = Array.from({ length: 20 }, () => rig.call(receiver.url));
    await notifier.handle(calls.flatMap((call) => personCall(call)));
    for (const { identity } of calls) {
      const bodies = await receiver.untilEnded(identity.callId);
      expect(bodies.map((body) => body.sequence)).toEqual([1, 2, 3, 4]);
    }

    // The attempts under way, and the calls that wait for their turn.
    expect(queuesThen).toBeLessThanOrEqual(32 + 200 + 300);
    // The end of an attempt that timed out may be seen after the beginning of the next one.
    await eventually(() => dead.sockets() <= 32, 'no more connections than sends at once');
    await eventually(() => notifier.queues() <= 32 + 200, 'only those for the dead one are left');
    // The last queue is released a moment after its notification was delivered.
    await eventually(async () => (await rig.lanesLeft()) === 1_500, 'what the dead one is owed');
  });

  test('leave room for receivers that answer, whatever their number', async () => {
    const notifier = await rig.start({
      gates: { maxUntrusted: 40, maxWaiting: 10, maxActive: 10 },
    });
    const first = rig.call(receiver.url);
    await notifier.handle([first.failed()]);
    await receiver.untilEnded(first.identity.callId);

    const dead = await Promise.all(Array.from({ length: 8 }, () => startHanging()));
    for (const { url } of dead) {
      const calls = Array.from({ length: 25 }, () => rig.call(url));
      await notifier.handle(calls.map((call) => call.failed()));
    }
    const calls = Array.from({ length: 10 }, () => rig.call(receiver.url));
    await notifier.handle(calls.flatMap((call) => personCall(call)));
    for (const { identity } of calls) await receiver.untilEnded(identity.callId);

    await eventually(
      () => notifier.queues() <= 40 + 25,
      'the dead receivers hold no more than their share',
    );
  });

  test('get everything in order after an hour of downtime', async () => {
    await rig.stop();
    rig = createNotifierRig(database, inTestTime(defaultRetrySchedule));
    await receiver.close();
    const port = await freeUdpPort();
    const clock = scaledClock(testTimeFactor);
    const url = `http://127.0.0.1:${port}/notify`;
    const notifier = await rig.start();
    const calls = Array.from({ length: 10 }, () => rig.call(url));
    const events = calls.map((call) => personCall(call));
    const downAt = clock.now();

    // Some events come before the others, because calls go on while the receiver is down.
    await notifier.handle(events.flatMap((ofCall) => ofCall.slice(0, 3)));
    await eventually(() => clock.now() - downAt > 20 * 60_000, 'twenty minutes');
    await notifier.handle(events.flatMap((ofCall) => ofCall.slice(3)));
    await eventually(() => clock.now() - downAt > 60 * 60_000, 'an hour');
    // A machine that stood still has made fewer attempts.
    const attemptsOfFirst = () => rig.attempts(events[0]?.[2]?.id ?? '');
    await eventually(
      async () => (await attemptsOfFirst()).length > 3,
      'the receiver gets many attempts',
    );
    receiver = await startReceiver(port);

    for (const { identity } of calls) {
      const bodies = await receiver.untilEnded(identity.callId);
      expect(glance(bodies)).toEqual([
        'Answered',
        'amd_human_detected',
        'amd_stopped',
        'completed',
      ]);
    }
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
    expect(receiver.received).toHaveLength(40);
    const attempts = await attemptsOfFirst();
    expect(attempts.length).toBeGreaterThan(3);
    expect(attempts.slice(0, -1).every(({ error }) => error === 'ECONNREFUSED')).toBe(true);
  });
});
