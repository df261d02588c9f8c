// Conversation details: access, responses and the restriction to days.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  conversationSession,
  publishedConversation,
} from '../../src/companion/conversations/conversation-schema.ts';
import { storeConversations } from '../../src/companion/conversations/published-conversations.ts';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { type Ask, errorsOf, problemOf, startRig } from './support.ts';

const { examples } = conversationSession.meta() as { readonly examples: readonly [object] };
const [example] = examples;

describe.each(databaseKinds)('conversation details on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  beforeAll(async () => {
    await rig.addBot({ botId: 'st-1', streamId: 'stream-1', accountId: 'acme' });
  });
  afterEach(() => rig.clear());

  let version = 1_795_000_000_000_000;
  /** Stores it as its consumer does. */
  const tell = (members: Record<string, unknown> = {}, accountId = 'acme') => {
    const body = publishedConversation.parse({
      sessionId: 'ss-1',
      accountId,
      ...example,
      ...members,
    });
    version += 1;
    return storeConversations(rig.database, [{ bot: { botId: 'st-1', accountId }, body, version }]);
  };
  type Get = Ask & { readonly path?: string; readonly body?: unknown };
  const headers = { accept: 'application/json', accountid: 'acme' };
  const get = ({ path = '/contactcenter/api/v1/public/st-1', body, ...ask }: Get = {}) =>
    rig.ask('GET', `${path}/conversations/sessions/ss-1`, body, {
      ...ask,
      headers: { ...headers, ...ask.headers },
    });

  test('has every documented member, exactly', async () => {
    covers(
      'conversations.get.response._id',
      'conversations.get.response.participants',
      'conversations.get.response.participants.queueId',
      'conversations.get.response.participants.queueStartTime',
      'conversations.get.response.participants.queueName',
      'conversations.get.response.participants.agentId',
      'conversations.get.response.participants.name',
      'conversations.get.response.participants.status',
      'conversations.get.response.participants.assignedAt',
      'conversations.get.response.participants.startTimeStamp',
      'conversations.get.response.participants.endTimeStamp',
      'conversations.get.response.participants.conversationTransferred',
      'conversations.get.response.participants.reason',
      'conversations.get.response.participants.endedChat',
      'conversations.get.response.transferDetails',
      'conversations.get.response.transferDetails.fromQueue',
      'conversations.get.response.transferDetails.transferredByAgentName',
      'conversations.get.response.transferDetails.transferredType',
      'conversations.get.response.transferDetails.transferredTo',
      'conversations.get.response.transferDetails.priority',
      'conversations.get.response.transferDetails.transferredAt',
      'conversations.get.response.transferDetails.systemTransferReason',
      'conversations.get.response.transferDetails.systemTransfer',
      'conversations.get.response.conversationType',
      'conversations.get.response.status',
      'conversations.get.response.summary',
      'conversations.get.response.dispositions',
      'conversations.get.response.dispositions.status',
      'conversations.get.response.dispositions.remarks',
      'conversations.get.response.dispositions.dispositionSets',
      'conversations.get.response.dispositions.metaStatus',
      'conversations.get.response.userInfo',
      'conversations.get.response.userInfo.firstName',
      'conversations.get.response.userInfo.lastName',
      'conversations.get.response.userInfo.email',
      'conversations.get.response.userInfo.phoneNumber',
      'conversations.get.response.userInfo.activationStatus',
      'conversations.get.response.notes',
    );
    const session = {
      _id: 'cv-1',
      participants: [
        {
          queueId: 'qu-1',
          queueStartTime: '2026-11-20T09:00:00.000Z',
          queueName: 'Sales',
          agentId: 'a-1',
          name: 'Ada',
          status: 'INACTIVE',
          assignedAt: '2026-11-20T09:00:10.000Z',
          startTimeStamp: '2026-11-20T09:00:20.001Z',
          endTimeStamp: '2026-11-20T09:05:00.999Z',
          conversationTransferred: true,
          reason: 'OVERDUE',
        },
        { agentId: 'a-2', name: 'Grace', status: 'ACTIVE', endedChat: false },
      ],
      transferDetails: [
        {
          fromQueue: 'qu-1',
          transferredByAgentName: 'Ada',
          transferredType: 'QUEUE',
          transferredTo: [{ id: 'qu-2', name: 'Billing', type: 'QUEUE' }],
          priority: 'HIGHEST',
          transferredAt: '2026-11-20T09:05:00.500Z',
          systemTransferReason: 'OVERDUE',
          systemTransfer: true,
        },
      ],
      conversationType: 'livechat',
      status: 'CLOSED',
      summary: ['An invoice was explained.', '„Danke“ 👋'],
      dispositions: {
        status: 'Resolved',
        remarks: 'Paid',
        dispositionSets: [{ dispositionsSet: 'Billing', dispositionCodes: 'Explained' }],
        metaStatus: 'AGENT_CLOSED',
      },
      userInfo: {
        firstName: 'Alan',
        lastName: 'Turing',
        email: 'alan@example.com',
        phoneNumber: '+15551230001',
        activationStatus: 'active',
      },
      notes: [{ text: 'calls again on Monday', by: { agent: 'a-1' } }, 'short'],
    };
    await tell(session);

    const response = await get();

    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.json()).toEqual(session);
  });

  test('is served under both schemes, and under both names of the bot', async () => {
    covers('conversations.get.path.botId', 'conversations.get.path.sessionId');
    await tell();

    for (const path of [
      '/contactcenter/api/v1/public/st-1',
      '/agentassist/api/v1/public/st-1',
      '/contactcenter/api/v1/public/stream-1',
    ]) {
      expect((await get({ path })).json()).toEqual(example);
    }
    for (const path of ['/contactcenter/api/v1/public/st-2', '/other/api/v1/public/st-1']) {
      expect((await get({ path })).statusCode).toBe(404);
    }
  });

  test('requires an app of the account with the scope', async () => {
    covers(
      'conversations.get.header.auth',
      'conversations.get.rule.scope',
      'conversations.get.header.accountid',
    );
    await tell();
    const statusOf = async (ask: Get) => (await get(ask)).statusCode;
    const analyst = await rig.addApp({ scopes: ['Contact Center Analytics'] });
    const others = await rig.addApp({ scopes: ['Dialout', 'Chat History'] });

    expect(await statusOf({ as: analyst })).toBe(200);
    expect(await statusOf({ as: undefined })).toBe(401);
    expect(await statusOf({ as: analyst, scheme: 'apiKey' })).toBe(401);
    expect(await statusOf({ as: others })).toBe(403);
    expect(await statusOf({ as: rig.rival })).toBe(404);
    expect(await statusOf({ as: rig.rival, headers: { accountid: 'rival' } })).toBe(404);
    expect(await statusOf({ headers: { accountid: 'rival' } })).toBe(404);
    const missing = await rig.ask(
      'GET',
      '/contactcenter/api/v1/public/st-1/conversations/sessions/ss-1',
      undefined,
      { headers: { accept: headers.accept } },
    );
    expect(missing.statusCode).toBe(400);
    expect(errorsOf(missing)).toEqual(['accountid: is required (header)']);
  });

  test.each([
    ['application/json', 200],
    ['application/json; charset=utf-8', 200],
    ['application/json, text/plain, */*', 200],
    ['*/*', 406],
    ['application/*', 406],
    ['text/html', 406],
    ['application/json;q=0', 406],
    ['application/json-seq, */*', 406],
    ['', 406],
    [undefined, 406],
  ])('accept %s is a %i', async (accept, status) => {
    covers('conversations.get.header.accept');
    await tell();

    const response = await rig.ask(
      'GET',
      '/contactcenter/api/v1/public/st-1/conversations/sessions/ss-1',
      undefined,
      { headers: { accountid: 'acme', ...(accept === undefined ? {} : { accept }) } },
    );

    expect(response.statusCode).toBe(status);
    if (status === 406) {
      expect(problemOf(response).type).toBe('urn:offhook:problem:not-acceptable');
    }
  });

  test.each([
    ['the day that it was on', { startDate: '2026-11-20', endDate: '2026-11-20' }, 200],
    ['from that day on', { startDate: '2026-11-20' }, 200],
    ['until that day', { endDate: '2026-11-20' }, 200],
    ['later days', { startDate: '2026-11-21' }, 404],
    ['earlier days', { endDate: '2026-11-19' }, 404],
    // 23:30 to 00:10 in Kiritimati, a day ahead of UTC.
    ['the last local minutes', { endDate: '2026-11-20', timeZoneOffset: -840 }, 200],
    ['the first local minutes', { startDate: '2026-11-21', timeZoneOffset: -840 }, 200],
    // 21:30 to 22:10 on the 19th in a zone behind UTC.
    ['a day too early there', { startDate: '2026-11-20', timeZoneOffset: 720 }, 404],
    ['the day before there', { endDate: '2026-11-19', timeZoneOffset: 720 }, 200],
    ['no days at all', { timeZoneOffset: 60 }, 200],
  ])('%s: %j is a %i', async (_name, days, status) => {
    covers(
      'conversations.get.body.startDate',
      'conversations.get.body.endDate',
      'conversations.get.body.timeZoneOffset',
      'conversations.get.header.Content-Type',
    );
    await tell({
      transferDetails: [],
      participants: [
        {
          status: 'INACTIVE',
          queueStartTime: '2026-11-20T09:30:00Z',
          endTimeStamp: '2026-11-20T10:10:00Z',
        },
      ],
    });
    const query = Object.fromEntries(
      Object.entries(days).map(([name, value]) => [name, String(value)]),
    );

    expect((await get({ body: days })).statusCode).toBe(status);
    expect((await get({ query })).statusCode).toBe(status);
    expect((await get({ query, body: days })).statusCode).toBe(status);
  });

  test('a session that goes on is found today; one without times, on the day of its publication', async () => {
    const today = new Date().toISOString().slice(0, 10);
    await tell({ status: 'ACTIVE' });
    expect((await get({ query: { startDate: today } })).statusCode).toBe(200);

    await tell({ participants: [], transferDetails: [] });
    expect((await get({ query: { endDate: '2026-11-17' } })).statusCode).toBe(404);
    expect((await get({ query: { startDate: '2026-11-18' } })).statusCode).toBe(200);
  });

  test.each([
    ['days that contradict', { startDate: '2026-11-20' }, { startDate: '2026-11-21' }, 'startDate'],
    ['days the wrong way round', {}, { startDate: '2026-11-20', endDate: '2026-11-19' }, 'endDate'],
    ['a half in each', { endDate: '2026-11-19' }, { startDate: '2026-11-20' }, 'endDate'],
    ['a day that does not exist', {}, { startDate: '2026-02-30' }, 'startDate'],
    ['a time', {}, { endDate: '2026-11-20T00:00:00Z' }, 'endDate'],
    ['a zone out of range', {}, { timeZoneOffset: -841 }, 'timeZoneOffset'],
    ['a zone as text', {}, { timeZoneOffset: '60' }, 'timeZoneOffset'],
    ['half a minute', { timeZoneOffset: '0.5' }, undefined, 'timeZoneOffset'],
    ['a misspelling', {}, { startdate: '2026-11-20' }, 'startdate'],
    ['a misspelling in the query', { start_date: '2026-11-20' }, undefined, 'start_date'],
  ])('%s is a 400 that names the member', async (_name, query, body, member) => {
    await tell();

    const response = await get({ query, ...(body === undefined ? {} : { body }) });

    expect(response.statusCode).toBe(400);
    expect(problemOf(response).errors?.map(({ path }) => path)).toEqual([member]);
  });

  test.each([
    ['half a document', '{"startDate":', {}, 400],
    ['a list', '[]', {}, 400],
    ['null', 'null', {}, 400],
    ['a prototype', '{"__proto__":{"startDate":"2026-11-20"}}', {}, 400],
    [
      'a form',
      'startDate=2026-11-20',
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
    ],
    ['compressed', '{}', { 'content-encoding': 'gzip' }, 415],
    ['more than 4 KiB', JSON.stringify({ x: 'y'.repeat(4_096) }), {}, 413],
    ['no body, but its type', '', { 'content-type': 'application/json' }, 200],
    ['an empty object', '{}', {}, 200],
  ])('a body that is %s', async (_name, body, more, status) => {
    await tell();

    const response = await get({ body, headers: more });

    expect(response.statusCode).toBe(status);
  });

  test.each(['ss-2', 'SS-1', 'ss-1%20', '%00', 'ss-1%ff', `ss-${'x'.repeat(126)}`])(
    'a session called %s is not found',
    async (name) => {
      await tell();

      const response = await rig.ask(
        'GET',
        `/contactcenter/api/v1/public/st-1/conversations/sessions/${name}`,
        undefined,
        { headers },
      );

      expect([400, 404]).toContain(response.statusCode);
    },
  );

  test('the same session id of another account is another session', async () => {
    await tell({ _id: 'ours' });
    await tell({ _id: 'theirs' }, 'rival');

    expect((await get()).json()).toMatchObject({ _id: 'ours' });
  });
});
