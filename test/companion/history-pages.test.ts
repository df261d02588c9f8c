// Pages of the history: start, direction, skipped sessions, and whether more is available. Every
// response is compared with one that the test computes from all messages.

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { type Page, type Published, published, tell } from './history-support.ts';
import { problemOf, type Rig, startRig } from './support.ts';

type Told = Published & { readonly bot: string };

const dayMs = 86_400_000;

/** Two bots on ten days, with few users, sessions and times, so that filters overlap. */
const all: readonly Told[] = Array.from({ length: 150 }, (_, index) => {
  const session = Math.floor(index / 9) + (index % 4 === 0 ? 1 : 0);
  return {
    ...published({
      createdOn: new Date(
        Date.parse('2026-11-10T00:00:00Z') + Math.floor(index / 3) * (dayMs / 5),
      ).toISOString(),
      createdBy: `user-${session % 3}`,
      sessionId: `ss-${session}`,
      channels: [{ type: index % 11 === 0 ? 'slack' : 'rtm' }],
      tags: { even: index % 2 === 0 },
      ...(index % 7 === 0 ? { taskType: 'alert' } : {}),
    }),
    bot: index % 5 === 0 ? 'st-2' : 'st-1',
  };
});

const date = fc
  .constantFrom(...all.map(({ createdOn }) => createdOn))
  .chain((createdOn) => fc.constantFrom(createdOn, createdOn.slice(0, 10)));

const asked = fc.record(
  {
    userId: fc.constantFrom('user-0', 'user-1', 'user-2', 'user-9'),
    sessionId: fc.array(
      fc.integer({ min: 0, max: 17 }).map((session) => `ss-${session}`),
      {
        minLength: 1,
        maxLength: 8,
      },
    ),
    channelType: fc.constantFrom('rtm', 'slack'),
    tags: fc.boolean().map((even) => ({ even })),
    dateFrom: date,
    dateTo: date,
    skip: fc.integer({ min: 0, max: 19 }),
    limit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(100)),
    forward: fc.boolean(),
    msgId: fc.constantFrom(...all.map(({ _id }) => _id)),
    direction: fc.constantFrom(-3, 0, 0.5),
  },
  { requiredKeys: [] },
);
type Asked = typeof asked extends fc.Arbitrary<infer Body> ? Body : never;

const paths = {
  '/api/public/bot/st-1/getMessages': { bots: ['st-1'], withTasks: true },
  '/api/public/bot/st-1/getMessagesV2': { bots: ['st-1'], withTasks: false },
  '/api/public/getMessages': { bots: ['st-1', 'st-2'], withTasks: true },
} as const;
type Path = keyof typeof paths;

const isOlder = (one: Told, other: Told): boolean =>
  one.createdOn === other.createdOn ? one._id < other._id : one.createdOn < other.createdOn;

function matching(path: Path, body: Asked): readonly Told[] {
  const { bots, withTasks } = paths[path];
  const { userId, sessionId: sessions, channelType = 'rtm', tags } = body;
  const { from, to } = windowOf(body);
  const matches = (one: Told): readonly boolean[] => [
    bots.some((bot) => bot === one.bot),
    withTasks || one.taskType !== 'alert',
    userId === undefined || one.createdBy === userId,
    sessions === undefined || sessions.includes(one.sessionId),
    one.channels?.[0]?.type === channelType,
    tags === undefined || one.tags?.['even'] === tags.even,
    Date.parse(one.createdOn) >= from && Date.parse(one.createdOn) <= to,
  ];
  return all
    .filter((one) => matches(one).every(Boolean))
    .toSorted((one, other) => (isOlder(one, other) ? -1 : 1));
}

/** Both dates are included. One date alone opens a window of seven days. */
function windowOf({ dateFrom = '', dateTo = '' }: Asked) {
  const from = Date.parse(dateFrom);
  const to = Date.parse(dateTo.length === 10 ? `${dateTo}T23:59:59.999Z` : dateTo);
  if (Number.isNaN(from))
    return { from: Number.isNaN(to) ? 0 : to + 1 - 7 * dayMs, to: to || Infinity };
  return { from, to: to || from + 7 * dayMs - 1 };
}

function isWindow({ dateFrom = '', dateTo = '' }: Asked): boolean {
  const spanMs = Date.parse(dateTo) - Date.parse(dateFrom);
  return Number.isNaN(spanMs) || (spanMs >= 0 && spanMs < 7 * dayMs);
}

function expectedPage(path: Path, body: Asked) {
  const { skip, limit = 100, forward = false, msgId } = body;
  const messages = matching(path, body);
  const start = all.find(({ _id }) => _id === msgId);
  const way = (start && body.direction) ?? (forward ? 1 : -1);
  const isAtOrAfter = (one: Told) => start === undefined || !isOlder(one, start);
  const isAtOrBefore = (one: Told) => start === undefined || !isOlder(start, one);
  // With both directions, the message itself counts as one of the older ones.
  const after = messages.filter((one) => isAtOrAfter(one) && (way > 0 || one._id !== msgId));
  const older = way > 0 ? [] : withoutSessions(messages.filter(isAtOrBefore).toReversed(), skip);
  const newer = way < 0 ? [] : withoutSessions(after, skip);
  const page = around(older, newer, limit);
  return {
    total: messages.length,
    moreAvailable: page.length < older.length + newer.length,
    ids: (forward ? page : page.toReversed()).map(({ _id }) => _id),
  };
}

/** Takes messages from both sides in turns, and from one side alone when the other has no more. */
function around(older: readonly Told[], newer: readonly Told[], limit: number): readonly Told[] {
  let [before, after] = [0, 0];
  while (before + after < Math.min(limit, older.length + newer.length)) {
    const isOldersTurn = after === newer.length || (before <= after && before < older.length);
    if (isOldersTurn) before += 1;
    else after += 1;
  }
  return [...older.slice(0, before).toReversed(), ...newer.slice(0, after)];
}

/** Counts sessions in the order of their messages. */
function withoutSessions(messages: readonly Told[], skip = 0): readonly Told[] {
  const skipped = [...new Set(messages.map(({ sessionId }) => sessionId))].slice(0, skip);
  return messages.filter(({ sessionId }) => !skipped.includes(sessionId));
}

describe.each(databaseKinds)('pages of the history on %s', (kind) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(kind);
    for (const botId of ['st-1', 'st-2']) {
      const messages = all.filter(({ bot }) => bot === botId);
      await tell(rig.database, messages, { botId, accountId: 'acme' });
    }
  });
  afterAll(() => rig.close());

  const post = async (path: Path, body: object) => {
    const response = await rig.ask('POST', path, body);
    if (response.statusCode !== 200) throw new Error(response.body);
    const { messages, total, moreAvailable } = response.json<Page>();
    return { total, moreAvailable, ids: messages.map(({ _id }) => _id) };
  };

  test.each([
    [
      'some filters',
      [
        'skip',
        'limit',
        'forward',
        'userId',
        'sessionId',
        'channelType',
        'tags',
        'dateFrom',
        'dateTo',
      ],
    ],
    ['a message to start from', ['skip', 'limit', 'forward', 'msgId', 'direction', 'userId']],
  ] as const)('equal the pages that are computed from all messages: %s', async (_what, members) => {
    covers('history.post.body.skip', 'history.post.body.limit', 'history.post.body.forward');
    covers('history.post.body.msgId', 'history.post.body.direction', 'history.post.body.sessionId');
    covers('history.messages.response.total', 'history.messages.response.moreAvailable');
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(paths) as Path[])),
        asked,
        async (path, drawn) => {
          const body: Asked = Object.fromEntries(
            Object.entries(drawn).filter(([name]) => members.some((member) => member === name)),
          );
          if (!isWindow(body)) delete body.dateTo;
          const isHere = all.some(
            ({ _id, bot }) => _id === body.msgId && paths[path].bots.some((one) => one === bot),
          );
          if (body.msgId !== undefined && !isHere) delete body.msgId;
          if (body.msgId === undefined) delete body.direction;

          expect(await post(path, body)).toEqual(expectedPage(path, body));
        },
      ),
      { numRuns: 60, seed: 20_261_120 },
    );
  });

  test('offset equals skip, in both methods', async () => {
    covers('history.post.body.offset', 'history.get.query.skip', 'history.get.query.offset');
    const path = '/api/public/bot/st-1/getMessages';
    const expected = expectedPage(path, { userId: 'user-1', skip: 2 });

    expect(await post(path, { userId: 'user-1', offset: 2 })).toEqual(expected);
    expect(await post(path, { userId: 'user-1', offset: 2, skip: 2 })).toEqual(expected);
    for (const query of [{ skip: '2' }, { offset: '2' }, { skip: '2', offset: '2' }]) {
      const response = await rig.ask('GET', path, undefined, {
        query: { userId: 'user-1', ...query },
      });
      expect(response.json<Page>().messages.map(({ _id }) => _id)).toEqual(expected.ids);
    }
  });

  test('paging by the last message reads everything once', async () => {
    covers('history.post.body.msgId', 'history.get.query.limit');
    const path = '/api/public/getMessages';
    const seen: string[] = [];
    let page = await post(path, { limit: 7 });
    while (page.moreAvailable) {
      seen.push(...page.ids.slice(0, -1));
      page = await post(path, { limit: 7, msgId: page.ids.at(-1), direction: -1 });
    }
    seen.push(...page.ids);

    expect(seen.slice(0, 100)).toEqual(expectedPage(path, {}).ids);
    expect(seen).toHaveLength(page.total);
    expect(new Set(seen).size).toBe(page.total);
  });

  test('an unknown message, or one of another bot, is a 404', async () => {
    const path = '/api/public/bot/st-1/getMessages';
    const ofOther = all.find(({ bot }) => bot === 'st-2');

    for (const msgId of ['ms-unknown', ofOther?._id]) {
      const response = await rig.ask('POST', path, { msgId });
      expect(response.statusCode).toBe(404);
      expect(problemOf(response).detail).toBe('There is no message with this id.');
    }
  });

  test('sessions are searched as far back as necessary', async () => {
    const long = Array.from({ length: 2_500 }, () => ({
      sessionId: 'ss-long',
      createdBy: 'user-long',
    }));
    const [kept] = await tell(rig.database, [
      { sessionId: 'ss-before', createdBy: 'user-long' },
      ...long,
    ]);
    const path = '/api/public/bot/st-1/getMessages';

    expect(await post(path, { userId: 'user-long', skip: 1 })).toEqual({
      total: 2_501,
      moreAvailable: false,
      ids: [kept],
    });
    expect((await post(path, { userId: 'user-long', skip: 2 })).ids).toEqual([]);
  });
});

test('pages leave database connections for calls, however many are requested at once', async () => {
  await using rig = await startRig('postgres');
  await tell(rig.database, [{}]);
  const ask = async () =>
    (await rig.ask('POST', '/api/public/bot/st-1/getMessagesV2', {})).statusCode;
  await ask();

  const statuses = await Promise.all(Array.from({ length: 60 }, ask));

  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(rig.database.pool.totalCount).toBeLessThan(10);
  const crowd = await Promise.all(Array.from({ length: 200 }, ask));
  expect(new Set(crowd)).toEqual(new Set([200, 503]));
});

test('a page of the largest messages ends early, and reports that more is available', async () => {
  await using rig = await startRig('postgres');
  const components = [{ cT: 'text', data: { text: 'x'.repeat(60_000) } }];
  await tell(
    rig.database,
    Array.from({ length: 570 }, () => ({ components })),
  );

  const response = await rig.ask('POST', '/api/public/bot/st-1/getMessagesV2', {});

  const page = response.json<Page>();
  expect(page).toMatchObject({ total: 570, moreAvailable: true });
  expect(page.messages.length).toBeGreaterThan(500);
  expect(page.messages.length).toBeLessThan(570);
});
