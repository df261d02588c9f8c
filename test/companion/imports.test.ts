// Imports skill groups: all are checked, and all or none are stored.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { importExample } from '../../src/companion/imports/skill-group-schemas.ts';
import { covers } from '../specification/covers.ts';
import type { SpecId } from '../specification/spec-ids.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { changed } from './changed.ts';
import { type Ask, errorsOf, problemOf, startRig } from './support.ts';

const url = '/contactcenter/api/v1/public/analytics/st-1/storeContactCenterFunctionalities';
const query = { accountId: 'acme', orgId: 'o-1', type: 'skillGroups' };
const headers = { accountId: 'acme' };
const metaData = { userId: 'u-1', ...query };

const skill = {
  _id: 'sk-1',
  name: 'Invoices',
  isDefault: false,
  description: 'Reads them',
  status: 'ACTIVE',
  lname: 'invoices',
  iId: 'st-1',
  createdByAId: 'a-1',
  agents: ['a-1', 'a-2'],
};

const group = {
  _id: 'sg-1',
  name: 'Billing',
  description: 'Everything about\ninvoices',
  status: 'ACTIVE',
  color: '#1F77b4',
  lname: 'billing',
  isDefault: true,
  iId: 'st-1',
  createdByAId: 'a-1',
  agentGroups: ['ag-1'],
  agents: ['a-1'],
  skills: [skill, { ...skill, _id: 'sk-2' }],
};

const least = {
  _id: 'sg-2',
  name: 'Sales',
  status: 'INACTIVE',
  isDefault: false,
  iId: 'st-1',
  createdByAId: 'a-1',
};

describe.each(databaseKinds)('imports on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  beforeAll(async () => {
    await rig.addBot({ botId: 'st-1', streamId: 'st-one', accountId: 'acme' });
  });
  afterEach(() => rig.clear());

  const post = (body: unknown, how: Ask = {}) =>
    rig.ask('POST', url, body, { headers, query, ...how });
  const load = (data: unknown, how?: Ask) => post({ data, metaData }, how);
  const stored = async () => {
    const { rows } = await rig.database.pool.query<{ record_id: string; record: object }>(
      'select * from imported_records order by account_id, org_id, record_id',
    );
    return rows;
  };

  test('stores every record with every member, and returns their number', async () => {
    covers(
      'imports.store.header.auth',
      'imports.store.header.accountId',
      'imports.store.path.botId',
      'imports.store.query.accountId',
      'imports.store.query.orgId',
      'imports.store.query.type',
      'imports.store.body.data',
      'imports.store.body.data.skills',
      'imports.store.body.metaData',
      'imports.store.response.msg',
    );
    const response = await load([group, least]);

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ msg: '2 skill groups were imported.' });
    const rows = await stored();
    expect(rows.map(({ record }) => record)).toEqual([group, least]);
    expect(rows[0]).toMatchObject({
      account_id: 'acme',
      org_id: 'o-1',
      type: 'skillGroups',
      record_id: 'sg-1',
      bot_id: 'st-1',
      imported_by: 'u-1',
    });
  });

  test('replaces the record of the same _id, within account, organization and type', async () => {
    await load([group, least]);
    const elsewhere = { ...metaData, orgId: 'o-2' };
    await post(
      { data: [least], metaData: elsewhere },
      { query: { ...query, orgId: elsewhere.orgId } },
    );
    const renamed = { ...least, name: 'Support' };

    const response = await load([renamed]);

    expect(response.json()).toEqual({ msg: '1 skill group was imported.' });
    expect((await stored()).map(({ record }) => record)).toEqual([group, renamed, least]);
  });

  test('accepts the documented example', async () => {
    const { metaData: named } = importExample;
    const agreeing = { accountId: named.accountId, orgId: named.orgId, type: named.type };

    const response = await post(importExample, { query: agreeing });

    expect(response.json()).toEqual({ msg: '1 skill group was imported.' });
  });

  test('keeps members that are not listed', async () => {
    const more = { ...least, __v: 3, toString: 'x', nested: { "'; --": [1e308, null, 'ü🐎'] } };

    expect((await load([more])).statusCode).toBe(200);
    expect((await stored()).map(({ record }) => record)).toEqual([more]);
  });

  test('accepts the stream alias of the bot', async () => {
    const response = await rig.ask(
      'POST',
      url.replace('st-1', 'st-one'),
      { data: [least], metaData },
      { headers, query },
    );

    expect(response.statusCode).toBe(200);
    expect((await stored())[0]).toMatchObject({ bot_id: 'st-1' });
  });

  const required: readonly [SpecId, string][] = [
    ['imports.store.body.data._id', '_id'],
    ['imports.store.body.data.name', 'name'],
    ['imports.store.body.data.status', 'status'],
    ['imports.store.body.data.isDefault', 'isDefault'],
    ['imports.store.body.data.iId', 'iId'],
    ['imports.store.body.data.createdByAId', 'createdByAId'],
    ['imports.store.body.data.skills._id', 'skills.1._id'],
    ['imports.store.body.data.skills.name', 'skills.1.name'],
    ['imports.store.body.data.skills.isDefault', 'skills.1.isDefault'],
    ['imports.store.body.data.skills.status', 'skills.1.status'],
    ['imports.store.body.data.skills.iId', 'skills.1.iId'],
    ['imports.store.body.data.skills.createdByAId', 'skills.1.createdByAId'],
  ];
  const optional: readonly [SpecId, string][] = [
    ['imports.store.body.data.description', 'description'],
    ['imports.store.body.data.color', 'color'],
    ['imports.store.body.data.lname', 'lname'],
    ['imports.store.body.data.agentGroups', 'agentGroups'],
    ['imports.store.body.data.agents', 'agents'],
    ['imports.store.body.data.skills', 'skills'],
    ['imports.store.body.data.skills.description', 'skills.0.description'],
    ['imports.store.body.data.skills.lname', 'skills.0.lname'],
    ['imports.store.body.data.skills.agents', 'skills.0.agents'],
  ];

  test.each(required)('%s is required', async (id, path) => {
    covers(id);
    const response = await load([least, changed(group, path, undefined)]);

    expect(response.statusCode).toBe(400);
    expect(errorsOf(response)).toEqual([`data.1.${path}: is required`]);
    expect(await stored()).toEqual([]);
  });

  test.each(optional)('%s is optional', async (id, path) => {
    covers(id);
    expect((await load([changed(group, path, undefined)])).statusCode).toBe(200);
  });

  test.each([...required, ...optional])(
    '%s is checked, and nothing is stored',
    async (id, path) => {
      covers(id);
      const response = await load([least, changed(group, path, { wrong: true })]);

      expect(response.statusCode).toBe(400);
      expect(problemOf(response).errors?.map((error) => error.path)).toEqual([`data.1.${path}`]);
      expect(await stored()).toEqual([]);
    },
  );

  test.each([
    ['color', 'red'],
    ['color', '#12345'],
    ['lname', 'Billing'],
    ['name', ''],
    ['_id', 'a\u0000b'],
    ['_id', 'x'.repeat(129)],
    ['agents.0', 7],
    ['skills.0', 'sk-1'],
  ])('%s cannot be %j', async (path, value) => {
    const response = await load([changed(group, path, value)]);

    expect(response.statusCode).toBe(400);
    expect(problemOf(response).errors?.[0]?.path).toBe(`data.0.${path}`);
  });

  test('the same _id twice in one body is a 400 that names both places', async () => {
    const response = await load([least, group, { ...least, name: 'Other' }]);

    expect(response.statusCode).toBe(400);
    expect(errorsOf(response)).toEqual(['data.2._id: is the _id of data.0 too']);
    expect(await stored()).toEqual([]);
  });

  const metaDataMembers: readonly [SpecId, 'userId' | 'orgId' | 'type' | 'accountId'][] = [
    ['imports.store.body.metaData.userId', 'userId'],
    ['imports.store.body.metaData.orgId', 'orgId'],
    ['imports.store.body.metaData.type', 'type'],
    ['imports.store.body.metaData.accountId', 'accountId'],
  ];
  test.each(metaDataMembers)('%s is required', async (id, name) => {
    covers(id);
    const { [name]: _, ...rest } = metaData;

    expect(errorsOf(await post({ data: [least], metaData: rest }))).toEqual([
      `metaData.${name}: is required`,
    ]);
    expect(await stored()).toEqual([]);
  });

  test('query, header and metaData must name the same account and organization', async () => {
    covers(
      'imports.store.query.accountId',
      'imports.store.query.orgId',
      'imports.store.header.accountId',
    );
    const header = await load([least], { headers: { accountId: 'rival' } });
    const account = await post({ data: [least], metaData: { ...metaData, accountId: 'rival' } });
    const organization = await load([least], { query: { ...query, orgId: 'o-2' } });

    expect(errorsOf(header)).toEqual(['accountId: differs from the header accountId']);
    expect(errorsOf(account)).toEqual(['metaData.accountId: differs from the query parameter']);
    expect(errorsOf(organization)).toEqual(['metaData.orgId: differs from the query parameter']);
    expect(await stored()).toEqual([]);
  });

  test.each(['accountId', 'orgId', 'type'] as const)(
    '%s in the query is required',
    async (name) => {
      const { [name]: _, ...rest } = query;

      expect(errorsOf(await load([least], { query: rest }))).toEqual([`${name}: is required`]);
    },
  );

  test('the header accountId is required', async () => {
    covers('imports.store.header.accountId');
    expect(errorsOf(await load([least], { headers: {} }))).toEqual([
      'accountid: is required (header)',
    ]);
  });

  test.each(['queues', 'standardResponses', 'waitingExperience', 'toString', ''])(
    'type %s is a 400 that lists the supported types',
    async (type) => {
      covers('imports.store.query.type', 'imports.store.body.metaData.type');
      const other = { ...metaData, type };
      const asked = await post({ data: [{}], metaData: other }, { query: { ...query, type } });
      const inside = await post({ data: [least], metaData: other });

      const message = 'must be skillGroups: no other type can be imported';
      expect(asked.statusCode).toBe(400);
      expect(errorsOf(asked)).toEqual([`type: ${message}`]);
      expect(errorsOf(inside)).toEqual([`metaData.type: ${message}`]);
    },
  );

  test('a body of another type is a 415, one without its members a 400', async () => {
    covers('imports.store.header.Content-Type');
    const text = { headers: { ...headers, 'content-type': 'text/plain' } };

    expect((await post('x', text)).statusCode).toBe(415);
    expect((await post('{')).statusCode).toBe(400);
    expect((await post([])).statusCode).toBe(400);
    expect((await post('null')).statusCode).toBe(400);
    expect((await post(undefined)).statusCode).toBe(400);
    expect((await load([])).statusCode).toBe(400);
    expect((await load({})).statusCode).toBe(400);
    expect((await load([null])).statusCode).toBe(400);
  });

  const megabyte = 1_024 * 1_024;
  const hostile: readonly [string, string][] = [
    [
      'a million empty records',
      JSON.stringify({ data: [], metaData }).replace('[]', `[${'{},'.repeat(megabyte)}{}]`),
    ],
    [
      '5,000 empty records',
      JSON.stringify({ data: Array.from({ length: 5_000 }, () => ({})), metaData }),
    ],
    [
      'a million empty skills',
      JSON.stringify({ data: [{ ...least, skills: 0 }], metaData }).replace(
        '"skills":0',
        `"skills":[${'{},'.repeat(megabyte)}{}]`,
      ),
    ],
    [
      'a million agents that are numbers',
      JSON.stringify({ data: [{ ...least, agents: 0 }], metaData }).replace(
        '"agents":0',
        `"agents":[${'1,'.repeat(megabyte)}1]`,
      ),
    ],
    [
      'deep nesting',
      JSON.stringify({ data: [{ ...least, x: 0 }], metaData }).replace(
        '"x":0',
        `"x":${'['.repeat(megabyte)}${']'.repeat(megabyte)}`,
      ),
    ],
    [
      'U+0000 in a member that is not listed',
      JSON.stringify({ data: [{ ...least, x: { y: '\u0000' } }], metaData }),
    ],
    [
      'half a surrogate pair in a description',
      JSON.stringify({ data: [{ ...least, description: '\ud800' }], metaData }),
    ],
    [
      'a number out of range',
      JSON.stringify({ data: [{ ...least, x: 0 }], metaData }).replace('"x":0', '"x":1e999'),
    ],
    [
      'a prototype',
      JSON.stringify({ data: [least], metaData }).replace('"_id"', '"__proto__":{"a":1},"_id"'),
    ],
    [
      'a record of 600 KiB',
      JSON.stringify({ data: [{ ...least, x: 'y'.repeat(600 * 1_024) }], metaData }),
    ],
  ];
  test.each(hostile)('%s is a 400 that stays short, and nothing is stored', async (_name, body) => {
    const response = await post(body);

    expect(response.statusCode).toBe(400);
    expect(response.body.length).toBeLessThan(20_000);
    expect(await stored()).toEqual([]);
  });

  test('a body of nearly 5 MiB is stored; a larger one is a 413 that names the limit', async () => {
    const description = 'd'.repeat(1_000);
    const body = {
      data: Array.from({ length: 4_600 }, (_, index) => ({
        ...least,
        _id: `sg-${index}`,
        description,
      })),
      metaData,
    };
    expect(JSON.stringify(body).length).toBeGreaterThan(4.9 * megabyte);

    const fits = await post(body);
    const tooLarge = await post(JSON.stringify({ ...body, more: 'x'.repeat(megabyte) }));

    expect(fits.json()).toEqual({ msg: '4600 skill groups were imported.' });
    expect(tooLarge.statusCode).toBe(413);
    expect(problemOf(tooLarge).detail).toBe('The body is larger than 5120 KiB.');
    expect(await stored()).toHaveLength(4_600);
  });

  test('simultaneous imports of the same records end with all records of one of them', async () => {
    const many = (name: string) =>
      Array.from({ length: 200 }, (_, index) => ({ ...least, _id: `sg-${index}`, name }));

    const responses = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name, index) =>
        load(index % 2 === 0 ? many(name) : many(name).toReversed()),
      ),
    );

    expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200]);
    const names = new Set((await stored()).map(({ record }) => (record as typeof least).name));
    expect(names.size).toBe(1);
  });

  test('nothing is stored if the database refuses one of the records', async () => {
    await rig.database.pool.query(
      "alter table imported_records add constraint no check (record_id <> 'sg-2')",
    );
    const response = await load([group, least]);
    await rig.database.pool.query('alter table imported_records drop constraint no');

    expect(response.statusCode).toBe(500);
    expect(await stored()).toEqual([]);
  });

  test('requires a token of an app with the scope, the account and the bot', async () => {
    covers('imports.store.rule.scope', 'imports.store.header.auth', 'service.auth.rule.jwt');
    const rivals = { accountId: 'rival', orgId: 'o-1', type: 'skillGroups' };
    const theirs = {
      query: rivals,
      headers: { accountId: 'rival' },
    };
    const theirBody = { data: [least], metaData: { ...metaData, accountId: 'rival' } };
    const otherBot = await rig.addApp({ bots: ['st-2'] });
    const status = async (response: ReturnType<typeof load>) => (await response).statusCode;

    expect(await status(load([least], { as: undefined }))).toBe(401);
    expect(await status(load([least], { scheme: 'apiKey' }))).toBe(401);
    expect(await status(load([least], { as: rig.powerless }))).toBe(403);
    expect(await status(load([least], { as: rig.rival }))).toBe(404);
    expect(await status(load([least], { as: otherBot }))).toBe(404);
    expect(await status(post(theirBody, theirs))).toBe(404);
    expect(await status(post(theirBody, { ...theirs, as: rig.rival }))).toBe(404);
    expect(await stored()).toEqual([]);
    const narrow = await rig.addApp({ scopes: ['Contact Center Import and Export Feature'] });
    expect(await status(load([least], { as: narrow }))).toBe(200);
  });
});
