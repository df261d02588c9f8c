// Messages that any client publishes on NATS for the bot runtime, and that clients read over HTTP.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { publishedMessage } from '../../src/companion/history/message-schema.ts';
import { storeMessages } from '../../src/companion/history/published-messages.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { forgetTraceIds, purgeHistory } from '../../src/store/retention.ts';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { type Page, type Published, published, tell } from './history-support.ts';
import { startRig } from './support.ts';

describe.each(databaseKinds)('published messages on %s', (kind) => {
  const rig = forSuite(() => startRig(kind, { nats: true }));
  beforeAll(async () => {
    await rig.addBot({ botId: 'st-1', streamId: 'stream-1', accountId: 'acme' });
  });
  afterEach(() => rig.clear());

  const publish = (message: unknown, bot = 'st-1') =>
    rig.events.nats.publish(
      `${rig.events.prefix}.ingest.messages.${bot}`,
      typeof message === 'string' ? message : JSON.stringify(message),
    );
  const history = async (body: object = {}): Promise<Page> =>
    (await rig.ask('POST', '/api/public/bot/st-1/getMessages', body)).json<Page>();
  const until = (total: number) =>
    eventually(async () => (await history()).total === total, `${total} messages`);
  const countsAreTrue = async () => {
    const counted = `
      select account_id, bot_id, coalesce(user_id, ''), channel, is_task, day, count(*)
      from (select *, (created_on at time zone 'UTC')::date as day from messages) dated
      group by account_id, bot_id, channel, is_task, day, grouping sets ((user_id), ())`;
    const { rows } = await rig.database.pool.query(`
      (${counted} except select * from message_counts)
      union all (select * from message_counts except ${counted})`);
    return rows.length === 0;
  };

  test('the example arrives under either name of the bot', async () => {
    covers('history.messages.response.botId');
    const [example] = (publishedMessage.meta() as { examples: [Published] }).examples;

    publish(example, 'stream-1');
    await until(1);

    const { taskType, agentInfo, secureForm, traceId: _kept30Days, ...message } = example;
    expect(taskType).toBe('dialog');
    expect((await history({ getAgentsInfo: true, includeSecureForm: true })).messages).toEqual([
      { ...message, botId: 'st-1', agentInfo, secureForm },
    ]);
  });

  test('a later version replaces an earlier one, and a repetition changes nothing', async () => {
    covers('history.messages.response.status');
    const message = published({ type: 'outgoing', status: 'queued' });

    publish(message);
    publish({ ...message, status: 'in progress' });
    publish({ ...message, status: 'delivered', tags: { seen: true } });
    publish({ ...message, status: 'delivered', tags: { seen: true } });
    const status = async () => (await history()).messages.map((one) => one.status);
    await eventually(async () => String(await status()) === 'delivered', 'it is delivered');

    expect(await history()).toMatchObject({ total: 1, messages: [{ tags: { seen: true } }] });
    expect(await countsAreTrue()).toBe(true);
  });

  test('a late or repeated message does not restore an earlier version', async () => {
    const body = (status: Published['status'], createdBy: string) =>
      publishedMessage.parse(published({ _id: 'ms-1', status, createdBy }));
    const bot = { botId: 'st-1', accountId: 'acme' };
    const queued = { bot, version: 1, body: body('queued', 'u-1') };
    const received = { bot, version: 2, body: body('received', 'u-2') };
    const delivered = { bot, version: 3, body: body('delivered', 'u-3') };

    for (const batch of [[delivered, queued], [received], [queued, received], [delivered]]) {
      await storeMessages(rig.database, batch);
    }

    expect(await history()).toMatchObject({ total: 1, messages: [{ status: 'delivered' }] });
    expect(await history({ userId: 'u-1' })).toMatchObject({ total: 0 });
    expect(await history({ userId: 'u-3' })).toMatchObject({ total: 1 });
    expect(await countsAreTrue()).toBe(true);
  });

  test('counts change if a later version moves a message to another user, channel or task', async () => {
    await tell(rig.database, [{ _id: 'ms-1', createdBy: 'u-1' }, { createdBy: 'u-1' }]);
    await tell(rig.database, [
      { _id: 'ms-1', createdBy: 'u-2', channels: [{ type: 'slack' }], taskType: 'alert' },
    ]);

    expect(await history({ userId: 'u-1' })).toMatchObject({ total: 1 });
    expect(await history({ channelType: 'slack' })).toMatchObject({ total: 1 });
    const v2 = '/api/public/bot/st-1/getMessagesV2';
    expect((await rig.ask('POST', v2, { channelType: 'slack' })).json()).toMatchObject({
      total: 0,
    });
    expect(await countsAreTrue()).toBe(true);
  });

  test('old messages are deleted and no longer counted', async () => {
    const day = (date: string) => ({ createdOn: `${date}T00:00:00.000Z`, createdBy: `u-${date}` });
    await tell(rig.database, [
      ...Array.from({ length: 1_100 }, () => day('2025-11-19')),
      day('2025-11-20'),
      day('2026-11-20'),
    ]);

    expect(await purgeHistory(rig.database, new Date('2025-11-20T00:00:00.000Z'))).toBe(1_100);

    expect(await history()).toMatchObject({ total: 2 });
    expect(await history({ userId: 'u-2025-11-19' })).toMatchObject({ total: 0, messages: [] });
    expect(await countsAreTrue()).toBe(true);
  });

  test('old trace ids are deleted, and their messages stay', async () => {
    await tell(rig.database, [
      { createdOn: '2025-11-19T23:59:59.999Z', traceId: 'old' },
      { createdOn: '2025-11-20T00:00:00.000Z', traceId: 'young' },
    ]);

    await forgetTraceIds(rig.database, new Date('2025-11-20T00:00:00.000Z'));

    const { rows } = await rig.database.pool.query(
      'select trace_id from messages order by created_on',
    );
    expect(rows).toEqual([{ trace_id: null }, { trace_id: '"young"' }]);
    expect(await history()).toMatchObject({ total: 2 });
    expect(await countsAreTrue()).toBe(true);
  });

  test('nothing is lost while the database stores nothing', async () => {
    const failures = () => rig.logged().split('cannot handle a batch of messages').length;
    await rig.database.pool.query('alter table messages rename to messages_away');
    const before = failures();

    for (let index = 0; index < 120; index += 1) publish(published());
    await eventually(() => failures() > before + 2, 'storing fails');
    await rig.database.pool.query('alter table messages_away rename to messages');

    await eventually(async () => (await history()).total === 120, 'all are stored', 30_000);
  });

  test('several nodes can store the same messages at once', async () => {
    const messages = Array.from({ length: 60 }, (_, index) => ({
      _id: `ms-${index}`,
      createdBy: `u-${index % 7}`,
    }));
    const shuffled = (by: number) =>
      messages.toSorted((a, b) => ((a._id.length * by) % 5) - ((b._id.length * by) % 5));

    await Promise.all([1, 2, 3, 4].map((by) => tell(rig.database, shuffled(by))));

    expect(await history()).toMatchObject({ total: 60 });
    expect(await countsAreTrue()).toBe(true);
  });

  test('an invalid message becomes a dead letter that names the error', async () => {
    const bad: readonly (readonly [object, string])[] = [
      [{ _id: undefined }, '_id'],
      [{ _id: 'x' }, '_id'],
      [{ type: 'sideways' }, 'type'],
      [{ status: 'lost' }, 'status'],
      [{ createdBy: '' }, 'createdBy'],
      [{ createdBy: 'a\u0000' }, 'createdBy'],
      [{ createdOn: 'yesterday' }, 'createdOn'],
      [{ createdOn: '9999-12-31T23:59:59-12:00' }, 'createdOn'],
      [{ channels: [{ type: 'pigeon' }] }, 'channels'],
      [{ tags: 'spring' }, 'tags'],
      [{ components: [{ cT: 'text', data: { text: 'x'.repeat(65_536) } }] }, 'larger'],
    ];
    const dead = streamNames(rig.events.prefix).dead;
    const { last_seq: before } = (await rig.events.manager.streams.info(dead)).state;
    const letter = (index: number) =>
      rig.events.manager.streams.getMessage(dead, { seq: before + 1 + index });

    for (const [members] of bad) publish({ ...published(), ...members });
    publish(published());
    await until(1);
    await eventually(async () => (await letter(bad.length - 1)) !== null, 'the last dead letter');

    for (const [index, [, named]] of bad.entries()) {
      const found = await letter(index);
      expect(found?.subject).toBe(`${rig.events.prefix}.dead.ingest-messages`);
      expect(found?.json<{ reason: string }>().reason).toContain(named);
    }
  });

  test.each([
    ['of a bot that is not registered', 'st-nobody'],
    ['with a bot id that no database accepts', 'st-\u0000'],
  ])('a message %s becomes a dead letter', async (_what, bot) => {
    const dead = streamNames(rig.events.prefix).dead;
    const { last_seq } = (await rig.events.manager.streams.info(dead)).state;

    publish(published(), bot);
    const found = () => rig.events.manager.streams.getMessage(dead, { seq: last_seq + 1 });
    await eventually(async () => (await found()) !== null, 'the dead letter');

    expect((await found())?.json()).toMatchObject({ reason: 'the bot is not registered' });
  });
});
