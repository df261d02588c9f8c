// Reads imported records, at the address of the import: by account, organization and type, page by
// page.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { importExample } from '../../src/companion/imports/skill-group-schemas.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { type Ask, errorsOf, startRig, type TestApp } from './support.ts';

type Page = {
  records: { record: { _id: string; name: string }; importedBy: string }[];
  nextCursor?: string;
};

const url = '/contactcenter/api/v1/public/analytics/st-1/storeContactCenterFunctionalities';
const place = { accountId: 'acme', orgId: 'o-1', type: 'skillGroups' };
const [example] = importExample.data;
const group = (_id: string, changes: object = {}) => ({ ...example, _id, ...changes });

describe.each(databaseKinds)('imported records on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  beforeAll(async () => {
    await rig.addBot({ botId: 'st-1', accountId: 'acme' });
    await rig.addBot({ botId: 'st-rival', accountId: 'rival' });
  });
  afterEach(() => rig.clear());

  async function load(data: object[], changes: Partial<typeof place> = {}, as?: TestApp) {
    const named = { ...place, ...changes };
    const path = named.accountId === 'acme' ? url : url.replace('st-1', 'st-rival');
    const response = await rig.ask(
      'POST',
      path,
      { data, metaData: { userId: 'u-1', ...named } },
      { query: named, headers: { accountId: named.accountId }, as: as ?? rig.acme },
    );
    expect(response.statusCode, response.body).toBe(200);
  }
  const get = (query: Record<string, string> = {}, ask: Ask = {}) =>
    rig.ask('GET', url, undefined, { query: { ...place, ...query }, ...ask });
  const pageOf = async (...asked: Parameters<typeof get>): Promise<Page> => {
    const response = await get(...asked);
    expect(response.statusCode, response.body).toBe(200);
    return response.json<Page>();
  };
  const idsIn = ({ records }: Page) => records.map(({ record }) => record._id);

  test('are returned with every member, the importing user, the bot and the time', async () => {
    const odd = group('sg-1', { note: { deep: [1, null, 'ü'] } });
    await load([odd]);

    expect(await pageOf()).toEqual({
      records: [
        {
          record: odd,
          botId: 'st-1',
          importedBy: 'u-1',
          importedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as string,
        },
      ],
    });
  });

  test('are paged by id, each once, whatever characters the ids contain', async () => {
    const ids = ['a b', 'sg-1', 'sg-10', 'sg-2', 'ä', '名前', '🎧', "'; --", 'x'.repeat(128)];
    await load(ids.map((id) => group(id)));

    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await pageOf({ limit: '2', ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...idsIn(page));
      cursor = page.nextCursor;
    } while (cursor !== undefined);

    expect(seen.toSorted()).toEqual(ids.toSorted());
    expect(idsIn(await pageOf())).toEqual(seen);
  });

  test('that are large end a page early, and none is missing', async () => {
    const large = {
      description: 'x'.repeat(9_000),
      agents: Array(10_000).fill('agent-id-of-20-chars'),
    };
    for (let index = 0; index < 5; index += 1) {
      await load(Array.from({ length: 10 }, (_, at) => group(`sg-${index}${at}`, large)));
    }

    const first = await pageOf({ limit: '200' });
    const second = await pageOf({ limit: '200', cursor: first.nextCursor ?? '' });

    expect(idsIn(first).length).toBeGreaterThan(10);
    expect(idsIn(first).length).toBeLessThan(50);
    expect([...idsIn(first), ...idsIn(second)]).toHaveLength(50);
  });

  test('are those of the organization; a record that is imported again is there once, in its latest form', async () => {
    await load([group('sg-1'), group('sg-2')]);
    await load([group('sg-1', { name: 'Invoices' })]);
    await load([group('sg-3')], { orgId: 'o-2' });

    const { records } = await pageOf();

    expect(records.map(({ record }) => [record._id, record.name])).toEqual([
      ['sg-1', 'Invoices'],
      ['sg-2', 'Billing'],
    ]);
    expect(idsIn(await pageOf({ orgId: 'o-2' }))).toEqual(['sg-3']);
    expect(idsIn(await pageOf({ orgId: 'o-3' }))).toEqual([]);
  });

  test('of another or an unknown account are not found', async () => {
    await load([group('sg-1')]);
    await load([group('sg-rival')], { accountId: 'rival' }, rig.rival);
    const statusOf = async (query: Record<string, string>, ask: Ask = {}) =>
      (await get(query, ask)).statusCode;

    expect(await statusOf({ accountId: 'rival' })).toBe(404);
    expect(await statusOf({ accountId: 'nobody' })).toBe(404);
    expect(await statusOf({}, { as: rig.rival })).toBe(404);
    expect(idsIn(await pageOf())).toEqual(['sg-1']);
  });

  test('require the rights of the import', async () => {
    const elsewhere = await rig.addApp({ bots: ['st-2'] });
    const statusOf = async (ask: Ask) => (await get({}, ask)).statusCode;

    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ as: rig.powerless })).toBe(403);
    expect(await statusOf({ as: elsewhere })).toBe(404);
    expect(await statusOf({ as: undefined })).toBe(401);
    expect(await statusOf({ scheme: 'apiKey' })).toBe(401);
  });

  test.each([
    ['orgId', { orgId: '\u0000' }],
    ['type', { type: 'queues' }],
    ['limit', { limit: '201' }],
    ['cursor', { cursor: '*' }],
    ['cursor', { cursor: Buffer.from('a\u0000b').toString('base64url') }],
    ['color', { color: 'red' }],
  ])('a wrong %s is named: %j', async (path, query) => {
    const response = await get(query as Record<string, string>);

    expect(response.statusCode).toBe(400);
    expect(errorsOf(response)).toEqual([expect.stringMatching(`^${path}: `)]);
  });
});
