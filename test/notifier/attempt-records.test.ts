// Attempts are stored in groups. A notification that is added to a call's queue meanwhile is sent
// without reading the database.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { createNotifierRig, type NotifierRig, personCall } from './notifier-rig.ts';

type Statement = { readonly name?: string };

describe.each(databaseKinds)('results of attempts, on %s', (kind) => {
  let rig: NotifierRig;
  let receiver: Receiver;
  /** Names of the prepared statements, in the order of the queries. */
  let asked: string[];
  /** Makes the next settlement fail. */
  let isRefusing: boolean;

  const database = forSuite(() => openTestDatabase(kind));
  beforeEach(async () => {
    asked = [];
    isRefusing = false;
    rig = createNotifierRig({ pool: watched(database.pool) });
    receiver = await startReceiver();
  });
  afterEach(async () => {
    await rig.stop();
    await receiver.close();
    await database.clear();
  });

  function watched(pool: TestDatabase['pool']): TestDatabase['pool'] {
    const query = (statement: Statement & string, ...rest: unknown[]) => {
      if (statement.name !== undefined) asked.push(statement.name);
      if (isRefusing && statement.name?.startsWith('notifier-settle of ') === true) {
        return Promise.reject(new Error('the database is away'));
      }
      return (pool.query as (...all: unknown[]) => unknown)(statement, ...rest);
    };
    return new Proxy(pool, {
      get: (target, key) => (key === 'query' ? query : (Reflect.get(target, key) as unknown)),
    });
  }
  const times = (name: string): number =>
    asked.filter((each) => each.startsWith(`${name} of `)).length;
  const nothingIsOwed = () => eventually(async () => (await rig.lanesLeft()) === 0, 'nothing owed');

  test('of forty simultaneous calls are stored in a handful of statements', async () => {
    const notifier = await rig.start({ pollMs: 60_000 });
    const calls = Array.from({ length: 40 }, () => rig.call(receiver.url));

    const begunAt = performance.now();
    await notifier.handle(calls.map((call) => call.answered()));
    await eventually(() => receiver.received.length === 40, 'all were told');
    await nothingIsOwed();
    const tookMs = performance.now() - begunAt;

    // One or two statements, or more if the receiver's responses take longer than the pause of 100
    // ms. With one statement for each attempt there would be 40.
    expect(times('notifier-settle')).toBeLessThanOrEqual(2 + tookMs / 100);
    expect(new Set(Object.values(await rig.states()))).toEqual(new Set(['delivered']));
  });

  test('a notification that is added during an attempt is sent after it, without reading the database', async () => {
    const notifier = await rig.start({ pollMs: 60_000 });
    const call = rig.call(receiver.url);
    const events = personCall(call);
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    receiver.answerWith(() => answered.then(() => 200));

    for (const event of events) await notifier.handle([event]);
    answer();
    const bodies = await receiver.untilEnded(call.identity.callId);
    await nothingIsOwed();

    expect(bodies.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect(receiver.received).toHaveLength(4);
    expect(times('notifier-load')).toBe(0);
    for (const { id } of events.slice(2)) {
      expect(await rig.attempts(id)).toMatchObject([{ attempt: 1, delivered: true }]);
    }
  });

  test('a notification that another process adds during an attempt is read and sent once', async () => {
    const notifier = await rig.start({ pollMs: 20 });
    const other = await rig.start({ nodeId: 'node-2', pollMs: 20 });
    const call = rig.call(receiver.url);
    const [, , answered, human, stopped, completed] = personCall(call);
    if (!answered || !human || !stopped || !completed) throw new Error('not a whole call');

    await notifier.handle([answered]);
    await other.handle([human]);
    await notifier.handle([stopped]);
    await notifier.handle([completed]);
    const bodies = await receiver.untilEnded(call.identity.callId);
    await nothingIsOwed();

    expect(bodies.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect(receiver.received).toHaveLength(4);
  });

  test('if they cannot be stored, the queue is kept, and added notifications are sent once', async () => {
    const notifier = await rig.start({ pollMs: 20 });
    const call = rig.call(receiver.url);
    isRefusing = true;

    await notifier.handle([call.answered()]);
    await eventually(() => times('notifier-settle') > 2, 'it is tried again');
    expect(new Set(Object.values(await rig.states()))).toEqual(new Set(['pending']));
    await notifier.handle([call.amd('amd_human_detected')]);
    isRefusing = false;
    await eventually(() => receiver.received.length === 2, 'the next one goes out');
    await nothingIsOwed();

    expect(receiver.received.map(({ body }) => body.sequence)).toEqual([1, 2]);
    expect(new Set(Object.values(await rig.states()))).toEqual(new Set(['delivered']));
  });

  test('of deliveries just before the end of the process are stored', async () => {
    const notifier = await rig.start();
    const call = rig.call(receiver.url);
    const event = call.answered();

    await notifier.handle([event]);
    await eventually(() => receiver.received.length === 1, 'it was told');
    await notifier.stop();

    expect(await rig.attempts(event.id)).toMatchObject([{ attempt: 1, delivered: true }]);
    expect(await rig.lanesLeft()).toBe(0);
  });
});
