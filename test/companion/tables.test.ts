// POST /api/public/tables/{tableName} through a complete server, on both databases.

import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { createDataTables } from '../../src/store/data-tables.ts';
import type { TableDefinition } from '../../src/store/table-definition.ts';
import { covers } from '../specification/covers.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { errorsOf, problemOf, startRig } from './support.ts';

const url = '/api/public/tables/visits';

const visits: TableDefinition = {
  name: 'visits',
  columns: [
    { name: 'name', type: 'string', required: true },
    { name: 'visits', type: 'integer' },
    { name: 'firstVisit', type: 'date' },
    { name: 'lastSeen', type: 'datetime' },
    { name: 'details', type: 'json' },
  ],
  writers: ['*'],
};

describe.each(databaseKinds)('inserting into a data table on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  afterEach(() => rig.clear());

  async function define(
    changes: Partial<TableDefinition> & { readonly accountId?: string } = {},
  ): Promise<TableDefinition> {
    // Each definition has its own name, because the API caches definitions for some seconds.
    const name = changes.name ?? `t${Math.random().toString(36).slice(2)}`;
    const table = { accountId: 'acme', ...visits, ...changes, name };
    const tables = createDataTables({ database: rig.database, clock: { now: () => new Date() } });
    await tables.define(table, { replace: false });
    return table;
  }

  const storedRows = async () => {
    const { rows } = await rig.database.pool.query('select * from data_rows order by created_on');
    return rows as readonly Record<string, unknown>[];
  };

  test('returns the stored row with its system columns', async () => {
    covers(
      'tables.insert.header.auth',
      'tables.insert.header.Content-Type',
      'tables.insert.path.tableName',
      'tables.insert.body.data',
      'tables.insert.response.row',
      'tables.insert.response.Created_On',
      'tables.insert.response.Updated_On',
      'tables.insert.response.Created_By',
      'tables.insert.response.Updated_By',
      'tables.insert.response.sys_Id',
      'tables.insert.response._id',
      'service.data.rule.timestamps',
    );
    await define({ name: 'visits' });
    const data = {
      name: 'Jane Doe',
      visits: 3,
      firstVisit: '2026-11-20',
      lastSeen: '2026-11-20T11:30:00+02:00',
      details: { tags: ['a', null] },
    };

    const response = await rig.ask('POST', url, { data });

    expect(response.statusCode).toBe(200);
    const answer = response.json<Record<string, string>>();
    const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;
    expect(answer).toEqual({
      ...data,
      lastSeen: '2026-11-20T09:30:00.000Z',
      Created_On: instant,
      Updated_On: answer['Created_On'],
      Created_By: rig.acme.appId,
      Updated_By: rig.acme.appId,
      sys_Id: expect.stringMatching(/^sys-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) as string,
      _id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    });
    expect(await storedRows()).toEqual([
      {
        sys_id: answer['sys_Id'],
        account_id: 'acme',
        table_name: 'visits',
        row: { ...data, lastSeen: '2026-11-20T09:30:00.000Z' },
        created_on: new Date(answer['Created_On'] ?? ''),
        updated_on: new Date(answer['Updated_On'] ?? ''),
        created_by: rig.acme.appId,
        updated_by: rig.acme.appId,
      },
    ]);
  });

  test('accepts the example of the OpenAPI document, and the response has the shape of its example', async () => {
    await define({ name: 'visits' });
    const { paths, components } = (await rig.ask('GET', '/openapi.json')).json<{
      paths: Record<string, { post: { operationId: string } }>;
      components: { schemas: Record<string, { examples: Record<string, unknown>[] }> };
    }>();
    const example = (name: string) => components.schemas[name]?.examples[0] ?? {};

    const response = await rig.ask('POST', url, example('DataTableInsertInput'));

    expect(paths['/api/public/tables/{tableName}']?.post.operationId).toBe('insertRow');
    expect(response.statusCode).toBe(200);
    expect(Object.keys(response.json<object>()).toSorted()).toEqual(
      Object.keys(example('DataTableRow')).toSorted(),
    );
  });

  test('lists every unknown, missing and wrong column at once, and stores nothing', async () => {
    const { name } = await define();

    const response = await rig.ask('POST', `/api/public/tables/${name}`, {
      data: { visits: 'three', firstVisit: '20.11.2026', colour: 'red', sys_Id: 'sys-1' },
    });

    expect(response.statusCode).toBe(400);
    expect(errorsOf(response)).toEqual([
      'data.name: is required',
      'data.visits: must be a number',
      'data.firstVisit: must be a date, e.g. 2026-11-20',
      'data.colour: is not a column of this table',
      'data.sys_Id: is set by the service',
    ]);
    expect(await storedRows()).toEqual([]);
  });

  test('column names with a meaning in SQL or JavaScript are only names', async () => {
    const names = [
      'constructor',
      'toString',
      `"a'; drop table data_rows; --`,
      'hasOwnProperty',
      '$1',
    ];
    const { name } = await define({
      columns: names.map((column) => ({ name: column, type: 'string', required: true })),
    });
    const data = Object.fromEntries(names.map((column) => [column, `of ${column}`]));

    const response = await rig.ask('POST', `/api/public/tables/${name}`, { data });

    expect(response.json()).toMatchObject(data);
    expect((await storedRows()).map(({ row }) => row)).toEqual([data]);
  });

  test.each<[string, string, number]>([
    ['a prototype', '{"data":{"name":"x","__proto__":{"visits":1}}}', 400],
    ['a prototype in other words', '{"data":{"name":"x","constructor":{"prototype":{}}}}', 400],
    ['a NUL in the name of a column', '{"data":{"name":"x","a\\u0000b":1}}', 400],
    ['a NUL in a value', '{"data":{"name":"\\u0000"}}', 400],
    ['half a surrogate pair', '{"data":{"name":"\\ud800"}}', 400],
    ['a number out of range', '{"data":{"name":"x","visits":1e999}}', 400],
    ['no data', '{}', 400],
    ['data that is a list', '{"data":[]}', 400],
    ['data that is null', '{"data":null}', 400],
    ['a list', '[]', 400],
    ['incomplete JSON', '{"data":', 400],
    ['nothing', '', 400],
    ['more than 256 KiB', `{"data":{"name":"${'x'.repeat(256 * 1_024)}"}}`, 413],
  ])('refuses %s', async (_name, body, status) => {
    const { name } = await define();

    const response = await rig.ask('POST', `/api/public/tables/${name}`, body);

    expect(response.statusCode).toBe(status);
    expect(problemOf(response).status).toBe(status);
    expect(await storedRows()).toEqual([]);
  });

  test('the error of a body that is not an object calls it the body', async () => {
    const { name } = await define();

    const response = await rig.ask('POST', `/api/public/tables/${name}`, '[]');

    expect(problemOf(response).errors).toEqual([{ path: '', message: 'must be an object (body)' }]);
  });

  test('a row is stored as it is returned, or refused with every wrong member', async () => {
    const types = ['string', 'number', 'json'] as const;
    const { name } = await define({ columns: types.map((type) => ({ name: type, type })) });
    const text = fc.string({ unit: 'binary', maxLength: 20 });
    const anything = fc.oneof(
      fc.jsonValue({ stringUnit: 'binary', maxDepth: 4 }),
      fc.double(),
      text,
    );
    const row = fc.oneof(
      fc.record({ string: text, number: fc.double(), json: anything }, { requiredKeys: [] }),
      fc.dictionary(fc.oneof(fc.constantFrom(...types), text), anything, { maxKeys: 4 }),
    );

    await fc.assert(
      fc.asyncProperty(row, async (data) => {
        const response = await rig.ask('POST', `/api/public/tables/${name}`, { data });
        if (response.statusCode !== 200) {
          expect(response.statusCode).toBe(400);
          return;
        }
        const { sys_Id, ...answer } = response.json<Record<string, unknown>>();
        const { rows } = await rig.database.pool.query<{ row: object }>(
          'select row from data_rows where sys_id = $1',
          [sys_Id],
        );
        expect(answer).toMatchObject(rows[0]?.row ?? { not: 'stored' });
      }),
      { numRuns: 100 },
    );
  });

  test('accepts a grant to the app’s id or to every app of the account, whatever the scopes', async () => {
    covers('tables.insert.rule.write-access');
    const ours = await define({ writers: [rig.acme.appId] });
    const everybodys = await define({ writers: ['*'] });
    const nobodys = await define({ writers: [] });
    const insert = async ({ name }: TableDefinition, app: 'acme' | 'powerless') => {
      const body = { data: { name: 'x' } };
      return (await rig.ask('POST', `/api/public/tables/${name}`, body, { as: rig[app] }))
        .statusCode;
    };

    expect(await insert(ours, 'acme')).toBe(200);
    expect(await insert(ours, 'powerless')).toBe(403);
    expect(await insert(everybodys, 'acme')).toBe(200);
    expect(await insert(everybodys, 'powerless')).toBe(200);
    expect(await insert(nobodys, 'acme')).toBe(403);
    expect(await storedRows()).toHaveLength(3);
  });

  test('a table of another account, or an invalid table name, is not found', async () => {
    const { name } = await define({ writers: ['*', rig.rival.appId] });
    const own = await define({ name, accountId: 'rival', writers: [] });
    const ask = async (table: string, app = rig.rival) =>
      (await rig.ask('POST', `/api/public/tables/${table}`, { data: {} }, { as: app })).statusCode;

    expect(await ask(own.name)).toBe(403);
    expect(await ask((await define()).name)).toBe(404);
    expect(await ask('never-defined')).toBe(404);
    expect(await ask('a%2Fb')).toBe(404);
    expect(await ask('a%00')).toBe(404);
    expect(await storedRows()).toEqual([]);
  });

  test('requires a JWT, and checks it and the grant first', async () => {
    const { name } = await define({ writers: [] });
    const path = `/api/public/tables/${name}`;

    expect((await rig.ask('POST', path, '{', { as: undefined })).statusCode).toBe(401);
    expect((await rig.ask('POST', path, '{', { scheme: 'apiKey' })).statusCode).toBe(401);
    expect((await rig.ask('POST', path, '{')).statusCode).toBe(403);
    expect((await rig.ask('POST', path, '{', { headers: { accept: 'text/csv' } })).statusCode).toBe(
      406,
    );
  });

  test('a table that has just been defined is found at once', async () => {
    const body = { data: { name: 'x' } };
    expect((await rig.ask('POST', '/api/public/tables/later', body)).statusCode).toBe(404);

    await define({ name: 'later' });

    expect((await rig.ask('POST', '/api/public/tables/later', body)).statusCode).toBe(200);
  });
});
