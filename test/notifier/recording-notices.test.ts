// The POST about a recording: signed, retried, kept as a dead letter, and replayed, outside the
// order of the call's notifications.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDeadLetters } from '../../src/notifier/dead-letters.ts';
import { defaultRetrySchedule } from '../../src/notifier/delivery-rules.ts';
import { createSender } from '../../src/notifier/http-sender.ts';
import { RecordingNotices } from '../../src/notifier/recording-notices.ts';
import { RecordingRows } from '../../src/store/recordings/recording-rows.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { type Receiver, signatureIsRight, startReceiver } from '../support/receiver.ts';
import { insertRows, rowsIn } from '../support/tables.ts';

const secret = 'whsec_c2VjcmV0';
const hourMs = 3_600_000;

/** A promise that the test resolves. */
function openPromise() {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}

describe.each(databaseKinds)('a POST about a recording on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  let receiver: Receiver;
  let now: Date;

  beforeEach(async () => {
    receiver = await startReceiver();
    now = new Date('2026-11-28T12:00:00Z');
  });
  afterEach(async () => {
    await receiver.close();
    await database.clear();
  });

  const sender = createSender({
    guard: createAddressGuard(['127.0.0.0/8']),
    now: () => now.getTime(),
  });
  const notices = () =>
    new RecordingNotices({
      ...{ pool: database.pool, mayDeliver: () => true, logger: silentLogger },
      delivery: {
        ...{ sender, secrets: async () => [secret], schedule: defaultRetrySchedule },
        ...{ now: () => now, random: () => 0, version: '1' },
      },
      onAttempt: () => undefined,
    });

  const delivered = async (): Promise<number> =>
    (await rowsIn(database.pool, 'recording_notices')).filter((row) => row['state'] === 'delivered')
      .length;

  /** Attempts what is due. @returns true if any is still pending */
  async function send(): Promise<boolean> {
    const one = notices();
    await one.send();
    await one.settled();
    return await one.send();
  }

  /** Stores a recording of a settled call whose request names the receiver. */
  async function storeRecording(): Promise<string> {
    const call = acceptedCall();
    const { callId, accountId, botId, request, acceptedAt: at } = call;
    await insertRows(database.pool, 'calls', [
      {
        ...{ ...call, state: 'ended', status: 'completed', dialBefore: at, endPublishedAt: at },
        ...{
          lastEventSequence: 8,
          request: { ...request, recording: { notifyUrl: receiver.url } },
        },
      },
    ]);
    const rows = new RecordingRows(database.pool, 'node-1/a', () => now);
    const recording = { callId, accountId, botId, ownerId: 'node-1/a', startedAt: at };
    await rows.claim({ ...recording, keyName: undefined });
    await rows.settle(callId, { state: 'stored' });
    return callId;
  }

  test('carries the event, signed, and is repeated until it is accepted', async () => {
    const callId = await storeRecording();
    receiver.answerWith(() => 503);
    expect(await send()).toBe(true);
    now = new Date(now.getTime() + 1_999);
    await send();
    expect(receiver.received.length).toBe(1);
    receiver.answerWith(() => 200);
    now = new Date(now.getTime() + 1);
    expect(await send()).toBe(false);
    const [, second] = receiver.received;
    expect(second && signatureIsRight(second, secret)).toBe(true);
    expect(JSON.parse(second?.rawBody ?? '')).toMatchObject({
      ...{ id: `evt-${callId.slice(5)}-9`, type: 'recording-stored', callId, eventSequence: 9 },
    });
  });

  test('goes out at once for many recordings, whatever receivers hang', async () => {
    const count = 60;
    const hanging = openPromise();
    let asked = 0;
    receiver.answerWith(async () => {
      asked += 1;
      if (asked === 1) await hanging.promise;
      return 200;
    });
    for (let index = 0; index < count; index += 1) await storeRecording();
    const one = notices();

    await one.send();

    await eventually(async () => (await delivered()) === count - 1, 'all but one are delivered');
    hanging.resolve();
    await one.settled();
    expect(await delivered()).toBe(count);
  });

  test('that another process has sent meanwhile stays as that process left it', async () => {
    const callId = await storeRecording();
    const hanging = openPromise();
    let asked = 0;
    receiver.answerWith(async () => {
      asked += 1;
      await hanging.promise;
      return 503;
    });
    const suspended = notices();
    await suspended.send();
    await eventually(() => asked === 1, 'the POST is sent');
    // The process was suspended for longer than its lease, and another one sends the POST.
    await database.pool.query(`update recording_notices set leased_until = now() - interval '1 s'`);
    receiver.answerWith(() => 200);
    expect(await send()).toBe(false);

    hanging.resolve();
    await suspended.settled();

    expect(await rowsIn(database.pool, 'recording_notices')).toMatchObject([
      { call_id: callId, state: 'delivered', attempts: 1 },
    ]);
  });

  test('becomes a dead letter after 24 h, which can be replayed', async () => {
    const callId = await storeRecording();
    receiver.answerWith(() => 500);
    for (let hour = 0; hour < 25; hour += 1) {
      await send();
      now = new Date(now.getTime() + hourMs);
    }
    let wasWoken = false;
    const letters = createDeadLetters(database, { now: () => now }, () => (wasWoken = true));
    const scope = { accountId: 'account-1', botId: 'bot-1' };
    const eventId = `evt-${callId.slice(5)}-9`;
    for (const seen of [scope, { accountId: 'account-1', botIds: 'all' as const }]) {
      const page = await letters.list(seen, { limit: 10 });
      expect(page).toMatchObject({
        deadLetters: [
          { eventId, failure: 'expired', lastStatus: 500, body: { type: 'recording-stored' } },
        ],
      });
    }
    expect(await letters.replayOne(scope, 'app-1', eventId)).toEqual({
      ...{ eventId, callId, state: 'pending', replayed: true },
    });
    expect(wasWoken).toBe(true);
    receiver.answerWith(() => 200);
    await send();
    expect(await letters.list(scope, { limit: 10 })).toEqual({ deadLetters: [] });
  });
});
