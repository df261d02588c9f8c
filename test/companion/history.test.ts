// Conversation history: its five forms, access and responses.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  channelTypes,
  message,
  messagePage,
  publishedMessage,
} from '../../src/companion/history/message-schema.ts';
import { covers } from '../specification/covers.ts';
import type { SpecId } from '../specification/spec-ids.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { type Message, type Page, tell } from './history-support.ts';
import { type Ask, errorsOf, problemOf, type Rig, startRig } from './support.ts';

const user = 'jane.doe@example.com';
const v1 = '/api/public/bot/st-1/getMessages';
const v2 = '/api/public/bot/st-1/getMessagesV2';
const console = '/api/public/getMessages';

describe.each(databaseKinds)('conversation history on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  beforeAll(async () => {
    await rig.addBot({
      botId: 'st-1',
      streamId: 'stream-1',
      accountId: 'acme',
      iconUrl: 'https://bots.example.com/logo.png',
    });
    await rig.addBot({ botId: 'st-2', accountId: 'acme' });
    await rig.addBot({ botId: 'st-rival', accountId: 'rival' });
  });
  afterEach(() => rig.clear());

  const get = (url: string, query: Record<string, string> = {}, ask: Ask = {}) =>
    rig.ask('GET', url, undefined, { query: { userId: user, ...query }, ...ask });
  const post = (url: string, body: unknown = {}, ask: Ask = {}) => rig.ask('POST', url, body, ask);
  const pageOf = async (answer: ReturnType<typeof get>): Promise<Page> => {
    const response = await answer;
    expect(response.statusCode, response.body).toBe(200);
    return messagePage.strict().parse(response.json());
  };
  const idsOf = async (answer: ReturnType<typeof get>) =>
    (await pageOf(answer)).messages.map(({ _id }) => _id);
  const first = async (answer: ReturnType<typeof get>): Promise<Message | undefined> =>
    (await pageOf(answer)).messages[0];

  test.each([
    ['GET', v1, 'history.v1-get.rule.path'],
    ['GET', v2, 'history.v2-get.rule.path'],
    ['POST', v1, 'history.v1-post.rule.path'],
    ['POST', v2, 'history.v2-post.rule.path'],
    ['POST', console, 'history.admin-post.rule.path'],
  ] as const)('%s %s returns the messages, most recent first', async (method, url, id) => {
    covers(id, 'history.messages.rule.recent-first', 'history.messages.path.botId');
    covers('history.messages.header.auth', 'history.messages.header.Content-Type');
    const told = await tell(rig.database, [{}, {}, {}]);

    const page = await pageOf(
      method === 'GET' ? get(url, { includeSecureForm: 'false' }) : post(url, { userId: user }),
    );

    covers('history.messages.response.total', 'history.messages.response.moreAvailable');
    covers('history.messages.response.messages');
    expect(page).toMatchObject({ total: 3, moreAvailable: false });
    expect(page.messages.map(({ _id }) => _id)).toEqual(told.toReversed());
  });

  test('a message is returned with every documented member, as it was published', async () => {
    const [example] = (publishedMessage.meta() as { examples: [{ _id: string }] }).examples;
    await tell(rig.database, [example]);

    const answered = await first(get(v1));

    expect(answered).toEqual(
      (message.meta() as { examples: [object] }).examples.map((documented) => ({
        ...documented,
        botId: 'st-1',
      }))[0],
    );
    covers('history.messages.response._id', 'history.messages.response.botId');
    covers('history.messages.response.type', 'history.messages.response.status');
    covers('history.messages.response.createdBy', 'history.messages.response.createdOn');
    covers('history.messages.response.channels', 'history.messages.response.channels.type');
    covers('history.messages.response.channels.channelUId', 'history.messages.response.lang');
    covers('history.messages.response.components', 'history.messages.response.components.cT');
    covers('history.messages.response.components.data', 'history.messages.response.chnl');
    covers('history.messages.response.tags', 'history.messages.response.sessionId');
  });

  test('every type and status of a message is returned', async () => {
    const types = ['incoming', 'outgoing'] as const;
    const statuses = ['received', 'queued', 'in progress', 'delivered', 'pending'] as const;
    covers('history.messages.response.type', 'history.messages.response.status');
    const all = types.flatMap((type) => statuses.map((status) => ({ type, status })));
    await tell(rig.database, all);

    const page = await pageOf(get(v1));

    expect(page.messages.map(({ type, status }) => ({ type, status }))).toEqual(all.toReversed());
  });

  test('timestamps are returned in UTC with milliseconds, whatever zone they were published in', async () => {
    await tell(rig.database, [{ createdOn: '2026-11-20T11:30:00+02:00' }]);
    covers('history.messages.rule.utc', 'history.messages.response.createdOn');

    expect((await first(get(v1)))?.createdOn).toBe('2026-11-20T09:30:00.000Z');
  });

  test('the icon is the logo of the bot, and empty if it has none', async () => {
    covers('history.messages.response.icon');
    expect(await pageOf(get(v1))).toMatchObject({ icon: 'https://bots.example.com/logo.png' });
    expect(await pageOf(get('/api/public/bot/st-2/getMessages'))).toMatchObject({ icon: '' });
    expect(await pageOf(post(console))).toMatchObject({ icon: '' });
  });

  test('the alias of a bot finds messages that were published under its id', async () => {
    await tell(rig.database, [{}]);

    const page = await pageOf(get('/api/public/bot/stream-1/getMessages'));

    expect(page.messages.map(({ botId }) => botId)).toEqual(['st-1']);
  });

  describe('access', () => {
    test('requires the scope Chat History', async () => {
      covers('history.messages.rule.scope-app', 'history.messages.header.auth');
      const as = await rig.addApp({ scopes: ['Bot Analytics > Chat History', 'Dialout'] });
      const reader = await rig.addApp({ scopes: ['Chat History'] });

      for (const url of [v1, v2]) {
        const query = { userId: user, includeSecureForm: 'true' };
        expect((await get(url, query, { as, query })).statusCode).toBe(403);
        expect((await post(url, {}, { as })).statusCode).toBe(403);
        expect((await post(url, {}, { as: undefined })).statusCode).toBe(401);
        expect((await post(url, {}, { scheme: 'apiKey' })).statusCode).toBe(401);
        expect((await post(url, {}, { as: reader })).statusCode).toBe(200);
      }
    });

    test('requires the scope Bot Analytics > Chat History on the path of the admin console', async () => {
      covers('history.messages.rule.scope-admin');
      const as = await rig.addApp({ scopes: ['Chat History'] });
      const reader = await rig.addApp({ scopes: ['Bot Analytics > Chat History'] });

      expect((await post(console, {}, { as })).statusCode).toBe(403);
      expect((await post(console, {}, { as: undefined })).statusCode).toBe(401);
      expect((await post(console, {}, { as: reader })).statusCode).toBe(200);
    });

    test('a bot of another account is a 404, and so is one that the app was not granted', async () => {
      const as = await rig.addApp({ bots: ['st-2'] });

      expect((await get('/api/public/bot/st-rival/getMessages')).statusCode).toBe(404);
      expect((await post(v1, {}, { as })).statusCode).toBe(404);
    });

    test('another account cannot read the messages, even of a bot with the same id', async () => {
      await tell(rig.database, [{}], { botId: 'st-shared', accountId: 'rival' });

      const url = '/api/public/bot/st-shared/getMessages';
      expect(await pageOf(post(url))).toMatchObject({ total: 0, messages: [] });
      expect(await pageOf(post(url, {}, { as: rig.rival }))).toMatchObject({ total: 1 });
    });

    test('the admin console reads every bot of the account that the app may see', async () => {
      covers('history.messages.path.botId', 'history.admin-post.rule.path');
      await tell(rig.database, [{}, {}]);
      await tell(rig.database, [{}], { botId: 'st-2', accountId: 'acme' });
      await tell(rig.database, [{}], { botId: 'st-nobody', accountId: 'acme' });
      await tell(rig.database, [{}], { botId: 'st-rival', accountId: 'rival' });
      const botsOf = async (as: Rig['acme']) => {
        const page = await pageOf(post(console, {}, { as }));
        expect(page.total).toBe(page.messages.length);
        return page.messages.map(({ botId }) => botId);
      };

      expect(await botsOf(rig.acme)).toEqual(['st-nobody', 'st-2', 'st-1', 'st-1']);
      expect(await botsOf(await rig.addApp({ bots: ['stream-1'] }))).toEqual(['st-1', 'st-1']);
      const byBothNames = await rig.addApp({ bots: ['st-1', 'stream-1'] });
      expect(await botsOf(byBothNames)).toEqual(['st-1', 'st-1']);
      expect(await botsOf(await rig.addApp({ bots: ['st-2', 'st-rival'] }))).toEqual(['st-2']);
      expect(await botsOf(await rig.addApp({ bots: ['st-rival'] }))).toEqual([]);
    });
  });

  describe('filters', () => {
    test('userId: messages of one user; required for GET only', async () => {
      covers('history.get.query.userId', 'history.post.body.userId');
      const [mine] = await tell(rig.database, [{}, { createdBy: 'u-other' }]);

      expect(await idsOf(get(v1))).toEqual([mine]);
      expect(await idsOf(post(v2, { userId: user }))).toEqual([mine]);
      expect(await pageOf(post(v1))).toMatchObject({ total: 2 });
      const without = await rig.ask('GET', v1);
      expect(without.statusCode).toBe(400);
      expect(errorsOf(without)).toEqual(['userId: is required']);
    });

    test('channelType: rtm by default, and each of the 25', async () => {
      covers('history.get.query.channelType', 'history.post.body.channelType');
      covers('history.messages.response.channels.type');
      const told = await tell(
        rig.database,
        channelTypes.map((type) => ({ channels: [{ type }] })),
      );
      const [unsaid] = await tell(rig.database, [{ channels: [{ channelUId: 'x' }] }]);

      expect(channelTypes).toHaveLength(25);
      for (const [index, channelType] of channelTypes.entries()) {
        const expected = channelType === 'rtm' ? [unsaid, told[index]] : [told[index]];
        expect(await idsOf(get(v1, { channelType }))).toEqual(expected);
      }
      expect(await idsOf(get(v1))).toEqual([unsaid, told[channelTypes.indexOf('rtm')]]);
      expect(await idsOf(post(v1, { channelType: 'slack' }))).toHaveLength(1);
      expect(await idsOf(post(v2))).toHaveLength(2);
      expect(errorsOf(await get(v1, { channelType: 'pigeon' }))).toEqual([
        `channelType: must be one of ${channelTypes.join(', ')}`,
      ]);
    });

    test('sessionId: one in the query, several in the body', async () => {
      covers('history.get.query.sessionId', 'history.post.body.sessionId');
      const sessions = ['ss-1', 'ss-2', 'ss-3'];
      const told = await tell(
        rig.database,
        sessions.map((sessionId) => ({ sessionId })),
      );

      expect(await idsOf(get(v1, { sessionId: 'ss-2' }))).toEqual([told[1]]);
      expect(await idsOf(post(v1, { sessionId: ['ss-1', 'ss-3'] }))).toEqual([told[2], told[0]]);
      expect(errorsOf(await post(v1, { sessionId: 'ss-1' }))).toEqual([
        'sessionId: must be an array',
      ]);
    });

    test('callId: messages of one call, on any channel', async () => {
      covers('history.get.query.callId');
      const [spoken] = await tell(rig.database, [
        { callId: 'call-1', channels: [{ type: 'ivrVoice' }] },
        { callId: 'call-2', channels: [{ type: 'ivrVoice' }] },
        {},
      ]);

      expect(await pageOf(get(v1, { callId: 'call-1' }))).toMatchObject({
        total: 1,
        messages: [{ _id: spoken }],
      });
      expect(await idsOf(get(v1, { callId: 'call-1', channelType: 'rtm' }))).toEqual([]);
      expect(await idsOf(post(v1, { callId: 'call-1' }))).toEqual([spoken]);
    });

    // "Query parameters (GET; some also usable in the v1 call for voice calls)"
    const inQuery: readonly [SpecId, Record<string, string>, number][] = [
      ['history.v1-post.query.userId', { userId: 'u-1' }, 3],
      ['history.v1-post.query.skip', { userId: 'u-1', skip: '1' }, 1],
      ['history.v1-post.query.offset', { userId: 'u-1', offset: '1' }, 1],
      ['history.v1-post.query.limit', { userId: 'u-1', limit: '1' }, 1],
      ['history.v1-post.query.channelType', { channelType: 'ivrVoice' }, 1],
      ['history.v1-post.query.dateFrom', { dateFrom: '2026-11-20' }, 4],
      ['history.v1-post.query.dateTo', { dateTo: '2026-11-19' }, 0],
      ['history.v1-post.query.sessionId', { sessionId: 'ss-2' }, 2],
      ['history.v1-post.query.callId', { callId: 'call-1' }, 1],
      ['history.v1-post.query.getAgentsInfo', { getAgentsInfo: 'true', sessionId: 'ss-1' }, 1],
      [
        'history.v1-post.query.includeSecureForm',
        { includeSecureForm: 'true', sessionId: 'ss-2' },
        2,
      ],
    ];
    test.each(inQuery)('%s: the POST accepts it in the query as well', async (id, query, count) => {
      covers(id);
      await tell(rig.database, [
        { createdBy: 'u-1', sessionId: 'ss-1', agentInfo: { name: 'Ada' } },
        { createdBy: 'u-1', sessionId: 'ss-2' },
        { createdBy: 'u-1', sessionId: 'ss-2', secureForm: { pin: '1' } },
        { createdBy: 'u-2', sessionId: 'ss-3' },
        { createdBy: 'u-2', sessionId: 'ss-3', callId: 'call-1', channels: [{ type: 'ivrVoice' }] },
      ]);
      for (const url of [v1, console]) {
        const { messages } = await pageOf(rig.ask('POST', url, {}, { query }));
        expect(messages).toHaveLength(count);
        const shown = (name: 'agentInfo' | 'secureForm') =>
          messages.some((message) => message[name] !== undefined);
        expect(shown('agentInfo')).toBe(query['getAgentsInfo'] === 'true');
        expect(shown('secureForm')).toBe(query['includeSecureForm'] === 'true');
      }
    });

    test('the query and the body of a POST are combined, and contradictions are named', async () => {
      const [wanted] = await tell(rig.database, [
        { createdBy: 'u-1', callId: 'call-1' },
        { createdBy: 'u-2', callId: 'call-1' },
      ]);
      const ask = (query: Record<string, string>, body: object) =>
        rig.ask('POST', v1, body, { query });

      expect(await idsOf(ask({ callId: 'call-1' }, { userId: 'u-1' }))).toEqual([wanted]);
      expect(errorsOf(await ask({ skip: '1' }, { offset: 2 }))).toHaveLength(2);
      expect(errorsOf(await ask({ dateFrom: '2026-11-20' }, { msgId: 'ms-1' }))).toHaveLength(2);
      expect(errorsOf(await ask({ limit: '101' }, {}))).toEqual(['limit: must be at most 100']);
      expect(errorsOf(await ask({ forward: 'true' }, {}))).toEqual(['forward: is not known']);
    });

    test('tags: messages with all of these tags', async () => {
      covers('history.post.body.tags');
      const [spring, both] = await tell(rig.database, [
        { tags: { campaign: 'spring' } },
        {
          tags: { campaign: 'spring', sessionTags: [{ name: 'vip', value: true }, { name: 'x' }] },
        },
        { tags: { campaign: 'autumn' } },
        { tags: {} },
      ]);
      const tagged = (tags: object) => idsOf(post(v1, { tags }));

      expect(await tagged({ campaign: 'spring' })).toEqual([both, spring]);
      expect(await tagged({ sessionTags: [{ name: 'vip' }] })).toEqual([both]);
      expect(await tagged({ campaign: 'winter' })).toEqual([]);
      expect(await tagged({})).toHaveLength(4);
      expect(await tagged({ constructor: 'x' })).toEqual([]);
    });

    test('version 2 omits messages of alert and action tasks, version 1 includes them', async () => {
      covers('history.messages.rule.v1-tasks', 'history.messages.rule.v2-tasks');
      const told = await tell(
        rig.database,
        ['alert', 'action', 'Alert', 'dialog', undefined].map((taskType) =>
          taskType === undefined ? {} : { taskType },
        ),
      );

      expect(await pageOf(get(v1))).toMatchObject({ total: 5 });
      expect(await pageOf(get(v2, { includeSecureForm: 'false' }))).toMatchObject({
        total: 2,
        messages: [{ _id: told[4] }, { _id: told[3] }],
      });
      expect(await pageOf(post(v2))).toMatchObject({ total: 2 });
      expect(await pageOf(post(console))).toMatchObject({ total: 5 });
    });
  });

  describe('dates', () => {
    const days = ['13', '14', '15', '20', '21'];
    const at = (day: string, time = '12:00:00.000') => `2026-11-${day}T${time}Z`;
    const daysOf = async (answer: ReturnType<typeof get>) =>
      (await pageOf(answer)).messages.map(({ createdOn }) => createdOn.slice(8, 10)).toReversed();
    const tellDays = () =>
      tell(
        rig.database,
        days.map((day) => ({ createdOn: at(day) })),
      );

    test('a day counts as a whole, and an instant to its millisecond', async () => {
      covers('history.get.query.dateFrom', 'history.get.query.dateTo');
      covers('history.post.body.dateFrom', 'history.post.body.dateTo');
      await tellDays();

      for (const ask of [
        (window: Record<string, string>) => get(v1, window),
        (window: object) => post(v1, window),
      ]) {
        expect(await daysOf(ask({ dateFrom: '2026-11-14', dateTo: '2026-11-20' }))).toEqual([
          '14',
          '15',
          '20',
        ]);
        expect(await daysOf(ask({ dateFrom: at('14'), dateTo: at('20') }))).toHaveLength(3);
        expect(
          await daysOf(
            ask({ dateFrom: at('14', '12:00:00.001'), dateTo: at('20', '11:59:59.999') }),
          ),
        ).toEqual(['15']);
        expect(await daysOf(ask({ dateFrom: '2026-11-14', dateTo: '2026-11-14' }))).toEqual(['14']);
      }
      expect(await pageOf(get(v1, { dateFrom: '2026-11-14', dateTo: '2026-11-20' }))).toMatchObject(
        {
          total: 3,
        },
      );
    });

    test('the span must be less than 7 days; one date alone means the 7 days from it or up to it', async () => {
      covers('history.messages.rule.span');
      await tellDays();

      expect(await daysOf(get(v1, { dateFrom: '2026-11-14' }))).toEqual(['14', '15', '20']);
      expect(await daysOf(get(v1, { dateTo: '2026-11-20' }))).toEqual(['14', '15', '20']);
      expect(await daysOf(get(v1))).toEqual(days);
      const window = { dateFrom: '2026-11-13', dateTo: '2026-11-20' };
      for (const response of [await get(v1, window), await post(v2, window)]) {
        expect(errorsOf(response)).toEqual(['dateTo: must be less than 7 days after `dateFrom`']);
      }
      const instants = { dateFrom: at('13'), dateTo: at('20') };
      expect((await post(v1, instants)).statusCode).toBe(400);
      expect((await post(v1, { ...instants, dateTo: at('20', '11:59:59.999') })).statusCode).toBe(
        200,
      );
      expect(errorsOf(await get(v1, { dateFrom: '2026-11-15', dateTo: '2026-11-14' }))).toEqual([
        'dateTo: must not be before `dateFrom`',
      ]);
    });

    test.each([
      '2026-02-30',
      '20.11.2026',
      '2026-11-20T09:30',
      'now',
      '',
      '2026-11-20T09:30:00+02:00',
      '0000-01-01',
      '9999-12-31',
    ])('%j is not a date', async (dateFrom) => {
      const response = await get(v1, { dateFrom });

      expect(response.statusCode).toBe(400);
      expect(problemOf(response).errors?.map(({ path }) => path)).toEqual(['dateFrom']);
    });
  });

  describe('members that are included on request', () => {
    test('includeTraceId: on incoming messages, for 30 days', async () => {
      covers('history.post.body.includeTraceId', 'history.messages.response.traceId');
      covers('history.messages.rule.trace-retention');
      const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
      const traceId = 'tc-"1"';
      await tell(rig.database, [
        { traceId, createdOn: daysAgo(30.01) },
        { traceId, createdOn: daysAgo(29.99) },
        { traceId, createdOn: daysAgo(1), type: 'outgoing' },
        { createdOn: daysAgo(0.5) },
      ]);
      const traces = async (body: object) =>
        (await pageOf(post(v1, body))).messages.map((found) => found.traceId);

      expect(await traces({ includeTraceId: true })).toEqual([
        undefined,
        undefined,
        traceId,
        undefined,
      ]);
      expect(await traces({ includeTraceId: false })).toEqual(Array(4).fill(undefined));
      expect(await traces({})).toEqual(Array(4).fill(undefined));
    });

    test('getAgentsInfo: the agent who wrote the message', async () => {
      covers('history.get.query.getAgentsInfo', 'history.post.body.getAgentsInfo');
      const agentInfo = { agentId: 'a-1', name: 'Ada' };
      await tell(rig.database, [{ agentInfo }]);

      expect(await first(get(v1, { getAgentsInfo: 'true' }))).toMatchObject({ agentInfo });
      expect(await first(post(v1, { getAgentsInfo: true }))).toMatchObject({ agentInfo });
      expect(await first(get(v1, { getAgentsInfo: 'false' }))).not.toHaveProperty('agentInfo');
      expect(await first(post(v1))).not.toHaveProperty('agentInfo');
    });

    test('includeSecureForm: the form input of the user; required for the GET of version 2', async () => {
      covers('history.get.query.includeSecureForm');
      const secureForm = { accountNumber: '00012345' };
      await tell(rig.database, [{ secureForm }]);

      expect(await first(get(v2, { includeSecureForm: 'true' }))).toMatchObject({ secureForm });
      expect(await first(get(v2, { includeSecureForm: 'false' }))).not.toHaveProperty('secureForm');
      expect(await first(get(v1))).not.toHaveProperty('secureForm');
      expect(await first(post(v2, { includeSecureForm: true }))).toMatchObject({ secureForm });
      expect(await first(post(v2))).not.toHaveProperty('secureForm');
      expect(errorsOf(await get(v2))).toEqual(['includeSecureForm: is required']);
      expect(errorsOf(await get(v2, { includeSecureForm: 'yes' }))).toEqual([
        'includeSecureForm: must be one of true, false',
      ]);
    });
  });

  describe('refuses', () => {
    test.each([
      ['skip and offset that differ', { skip: 1, offset: 2 }, ['skip', 'offset']],
      [
        'a message and dates',
        { msgId: 'ms-1', dateFrom: '2026-11-20', dateTo: '2026-11-20' },
        ['msgId', 'dateFrom', 'dateTo'],
      ],
      ['a message and a date', { msgId: 'ms-1', dateTo: '2026-11-20' }, ['msgId', 'dateTo']],
      ['a direction without a message', { direction: 1 }, ['direction']],
      ['an unknown member', { channeltype: 'rtm' }, ['channeltype']],
      ['a skip below 0', { skip: -1 }, ['skip']],
      ['half a session', { offset: 0.5 }, ['offset']],
      ['booleans as text', { forward: 'true', includeTraceId: 1 }, ['forward', 'includeTraceId']],
      ['an invalid message id', { msgId: 'x' }, ['msgId']],
      [
        'characters that no database can store',
        { userId: '\u0000', sessionId: ['\u0000'], tags: { a: '\u0000' } },
        ['userId', 'sessionId.0', 'tags'],
      ],
      ['no sessions', { sessionId: [] }, ['sessionId']],
      ['too many sessions', { sessionId: Array(101).fill('ss-1') }, ['sessionId']],
      ['nulls', { userId: null, tags: null }, ['userId', 'tags']],
    ])('%s', async (_what, body, paths) => {
      const response = await post(v1, body);

      expect(response.statusCode).toBe(400);
      expect(
        problemOf(response)
          .errors?.map(({ path }) => path)
          .toSorted(),
      ).toEqual(paths.toSorted());
    });

    test.each(['[]', '"x"', 'null', '{', ''])('%j as a body', async (body) => {
      expect(
        (await post(v1, body, { headers: { 'content-type': 'application/json' } })).statusCode,
      ).toBe(400);
    });

    test('unknown members in a query, and members that are given twice', async () => {
      expect(errorsOf(await get(v1, { forward: 'true' }))).toEqual(['forward: is not known']);
      const twice = await rig.ask('POST', v1, { callId: 'c' }, { query: { callId: 'c' } });
      expect(errorsOf(twice)).toEqual(['callId: is also in the query']);
    });

    test('more than 100 messages in version 1, more than 10,000 in version 2', async () => {
      covers('history.messages.rule.v1-limit', 'history.messages.rule.v2-limit');
      covers('history.get.query.limit', 'history.post.body.limit');
      const statuses = async (limit: number) => [
        (await get(v1, { limit: String(limit) })).statusCode,
        (await post(v1, { limit })).statusCode,
        (await post(console, { limit })).statusCode,
        (await get(v2, { limit: String(limit), includeSecureForm: 'true' })).statusCode,
        (await post(v2, { limit })).statusCode,
      ];

      expect(await statuses(0)).toEqual([400, 400, 400, 400, 400]);
      expect(await statuses(100)).toEqual([200, 200, 200, 200, 200]);
      expect(await statuses(101)).toEqual([400, 400, 400, 200, 200]);
      expect(await statuses(10_000)).toEqual([400, 400, 400, 200, 200]);
      expect(await statuses(10_001)).toEqual([400, 400, 400, 400, 400]);
      expect(errorsOf(await post(v1, { limit: 101 }))).toEqual(['limit: must be at most 100']);
    });
  });
});
