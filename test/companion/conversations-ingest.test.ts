// Conversations that the contact center publishes on NATS and clients read over HTTP.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { publishedConversation } from '../../src/companion/conversations/conversation-schema.ts';
import { storeConversations } from '../../src/companion/conversations/published-conversations.ts';
import { databaseKinds } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { startRig } from './support.ts';

const { examples } = publishedConversation.meta() as {
  readonly examples: readonly [{ readonly sessionId: string }];
};
const [example] = examples;
const { sessionId } = example;
const headers = { accept: 'application/json', accountid: 'acme' };

describe.each(databaseKinds)('published conversations on %s', (kind) => {
  const rig = forSuite(() => startRig(kind, { nats: true }));
  beforeAll(async () => {
    await rig.addBot({ botId: 'st-1', streamId: 'stream-1', accountId: 'acme' });
  });
  afterEach(() => rig.clear());

  const publish = (changes: Record<string, unknown> = {}, bot = 'st-1') =>
    rig.events.jetstream.publish(
      `${rig.events.prefix}.ingest.conversations.${bot}`,
      JSON.stringify({ ...example, ...changes }),
    );
  const get = async (session = sessionId) => {
    const url = `/contactcenter/api/v1/public/st-1/conversations/sessions/${session}`;
    const response = await rig.ask('GET', url, undefined, { headers });
    return { status: response.statusCode, body: response.json<Record<string, unknown>>() };
  };
  const until = (members: Record<string, unknown>) =>
    eventually(async () => {
      const { body } = await get();
      return Object.entries(members).every(([name, value]) => body[name] === value);
    }, 'the conversation as it was published last');

  test('the example arrives unchanged', async () => {
    await publish();
    await until({ status: 'CLOSED' });

    const { sessionId: _asked, accountId: _owner, ...session } = { accountId: '', ...example };
    expect((await get()).body).toEqual(session);
  });

  test('times become UTC with milliseconds, and absent and unknown members are omitted', async () => {
    await publish(
      {
        status: 'ACTIVE',
        mood: 'good',
        participants: [
          {
            status: 'ACTIVE',
            queueStartTime: '2026-11-20T10:00:00+01:00',
            assignedAt: '2026-11-20T09:00:00.1234567Z',
            mood: 'good',
          },
        ],
        transferDetails: undefined,
        summary: undefined,
        dispositions: undefined,
        userInfo: undefined,
        notes: undefined,
      },
      'stream-1',
    );
    await until({ status: 'ACTIVE' });

    expect((await get()).body).toEqual({
      _id: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
      conversationType: 'livechat',
      status: 'ACTIVE',
      participants: [
        {
          status: 'ACTIVE',
          queueStartTime: '2026-11-20T09:00:00.000Z',
          assignedAt: '2026-11-20T09:00:00.123Z',
        },
      ],
      transferDetails: [],
      summary: [],
      dispositions: {},
      userInfo: {},
      notes: [],
    });
  });

  test('a later version replaces an earlier one', async () => {
    for (const status of ['WAITING', 'ACTIVE', 'CLOSED']) await publish({ status });

    await until({ status: 'CLOSED' });
  });

  test('an earlier version that arrives late or again changes nothing', async () => {
    const told = (version: number, status: string) => ({
      bot: { botId: 'st-1', accountId: 'acme' },
      body: publishedConversation.parse({ ...example, status }),
      version,
    });
    const statusAfter = async (...batch: ReturnType<typeof told>[]) => {
      await storeConversations(rig.database, batch);
      return (await get()).body['status'];
    };

    expect(await statusAfter(told(2, 'second'))).toBe('second');
    expect(await statusAfter(told(1, 'first'))).toBe('second');
    expect(await statusAfter(told(4, 'fourth'), told(3, 'third'), told(4, 'fourth'))).toBe(
      'fourth',
    );
    expect(await statusAfter(told(2, 'second'), told(4, 'fourth'))).toBe('fourth');
    expect(await statusAfter(told(5, 'fifth'))).toBe('fifth');
  });

  test('an invalid conversation, or one of another or no account, becomes a dead letter with the reason', async () => {
    const letters: { readonly reason: string }[] = [];
    const subscription = rig.events.nats.subscribe(
      `${rig.events.prefix}.dead.ingest-conversations`,
      { callback: (_error, message) => void letters.push(message.json()) },
    );

    await publish({ accountId: 'rival' });
    await publish({}, 'st-nobodys');
    await publish({ participants: [{ status: 'ASLEEP' }] });
    await publish({ participants: [{ status: 'ACTIVE', startTimeStamp: 'yesterday' }] });
    await publish({
      participants: [{ status: 'ACTIVE', endTimeStamp: '0000-01-01T00:00:00+01:00' }],
    });
    await publish({ sessionId: 'a b' });
    await publish({ summary: ['\u0000'] });
    await publish({ notes: [{ text: '\ud800' }] });
    await publish({ sessionId: 'ss-good' });
    await eventually(() => letters.length === 8, 'eight dead letters');
    await eventually(async () => (await get('ss-good')).status === 200, 'the good one');
    subscription.unsubscribe();

    expect(letters.map(({ reason }) => reason.replaceAll(/\s+/g, ' ')).toSorted()).toEqual([
      expect.stringMatching(/^the bot is not registered/),
      expect.stringMatching(/^the bot is registered for another account/),
      expect.stringMatching(/^the database refuses it/),
      expect.stringMatching(/^the database refuses it/),
      expect.stringMatching(/participants\[0\]\.startTimeStamp$/),
      expect.stringMatching(/sessionId$/),
      expect.stringMatching(/participants\[0\]\.status$/),
      expect.stringMatching(/four-digit year → at participants\[0\]\.endTimeStamp$/),
    ]);
    expect((await get()).status).toBe(404);
  });
});
