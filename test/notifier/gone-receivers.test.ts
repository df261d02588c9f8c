// A receiver answers 410 while an event of its call is being stored. Nothing more is sent,
// whichever is stored first.

import { afterEach, describe, expect, test } from 'vitest';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { createDeadLetters } from '../../src/notifier/dead-letters.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forEachTest, forSuite } from '../support/opened.ts';
import { startReceiver } from '../support/receiver.ts';
import { createNotifierRig } from './notifier-rig.ts';

describe.each(databaseKinds)('410, on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  const receiver = forEachTest(startReceiver);
  const rig = forEachTest(() => createNotifierRig(database));
  afterEach(() => database.clear());

  const nothingIsOwed = () =>
    eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
  const answers = () => receiver.received.map(({ body, status }) => [body.sequence, status]);

  /** Inserts only the rows that `append to calls` would insert. */
  async function storePending(sql: Pick<TestDatabase['pool'], 'query'>, event: CallEvent) {
    const { id, callId, accountId, botId, type, time, data } = event;
    await sql.query(
      `with stored as (
         insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
         select day, call_id, 2, $1, $5, $6, $7 from calls where call_id = $2
       )
       insert into notifications (day, event_id, call_id, account_id, bot_id, sequence, event_sequence, state, attempts,
         created_at)
       select day, $1, call_id, $3, $4, 2, 2, 'pending', 0, now() from calls where call_id = $2`,
      [id, callId, accountId, botId, type, time, JSON.stringify(data)],
    );
  }

  // The embedded database runs one statement after the other, so the two cannot overlap there.
  if (kind === 'postgres')
    test('makes an event a dead letter that is being stored when the 410 is stored', async () => {
      const notifier = await rig.start();
      const call = rig.call(receiver.url);
      const [answered, completed] = [call.answered(), call.completed()];
      let refuse: () => void = () => undefined;
      receiver.answerWith(({ sequence }) =>
        sequence === 1 ? new Promise((resolve) => (refuse = () => resolve(410))) : 200,
      );
      await notifier.handle([answered]);

      // The second statement begins, and waits for a row of the same name that may be committed.
      const other = await database.pool.connect();
      await other.query('begin');
      await storePending(other, completed);
      const ending = notifier.handle([completed]);
      await eventually(async () => {
        const { rowCount } = await database.pool.query(
          `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        return rowCount === 1;
      }, 'it waits');
      refuse();
      await nothingIsOwed();
      await other.query('rollback');
      other.release();
      await ending;

      await nothingIsOwed();
      expect(await rig.states()).toEqual({ [answered.id]: 'failed', [completed.id]: 'failed' });
      expect(answers()).toEqual([[1, 410]]);
    });

  test('makes a pending notification a dead letter that is read after the 410 was stored', async () => {
    const notifier = await rig.start();
    const call = rig.call(receiver.url);
    const [answered, completed] = [call.answered(), call.completed()];
    receiver.answerWith(() => 410);
    await notifier.handle([answered]);
    await nothingIsOwed();

    // The rows of a statement that began before the 410 was stored.
    await storePending(database.pool, completed);
    await database.pool.query(
      `insert into notification_lanes (call_id, day, account_id, origin, next_attempt_at)
       select call_id, day, 'acme', $2, now() from calls where call_id = $1`,
      [call.identity.callId, new URL(receiver.url).origin],
    );

    await nothingIsOwed();
    expect(await rig.states()).toEqual({ [answered.id]: 'failed', [completed.id]: 'failed' });
    expect(answers()).toEqual([[1, 410]]);
  });

  test('does not prevent a replay from being sent', async () => {
    const notifier = await rig.start();
    const call = rig.call(receiver.url);
    const [answered, completed] = [call.answered(), call.completed()];
    receiver.answerWith(() => 410);
    await notifier.handle([answered]);
    await nothingIsOwed();
    await notifier.handle([completed]);
    await database.pool.query('update calls set notify_url = $1', [receiver.url]);
    const deadLetters = createDeadLetters(database, { now: () => new Date() }, () => rig.wake());
    receiver.answerWith(() => 200);

    await deadLetters.replayOne({ accountId: 'acme', botId: 'st-bot' }, 'app-1', answered.id);

    await nothingIsOwed();
    expect(await rig.states()).toEqual({ [answered.id]: 'delivered', [completed.id]: 'failed' });
  });
});
