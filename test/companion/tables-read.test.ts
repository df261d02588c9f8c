// GET /api/public/tables/{tableName}: apps that may write read the inserted rows, page by page.

import { afterEach, describe, expect, test } from 'vitest';
import { rowsStatement } from '../../src/companion/tables/stored-rows.ts';
import { createDataTables } from '../../src/store/data-tables.ts';
import type { TableDefinition } from '../../src/store/table-definition.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { planOf } from '../support/plan-of.ts';
import { type Ask, errorsOf, startRig } from './support.ts';

type Page = { rows: { name: string; sys_Id: string }[]; nextCursor?: string };

const definition: Omit<TableDefinition, 'name'> = {
  columns: [
    { name: 'name', type: 'string' },
    { name: 'constructor', type: 'json' },
  ],
  writers: ['*'],
};

describe.each(databaseKinds)('rows of a data table on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  afterEach(() => rig.clear());

  let tables = 0;
  /** Each definition has its own name, because the API caches definitions for some seconds. */
  async function define(
    changes: Partial<TableDefinition> & {
      readonly accountId?: string;
      readonly replace?: true;
    } = {},
  ): Promise<string> {
    tables += 1;
    const { replace = false, ...told } = changes;
    const table = { accountId: 'acme', name: `table-${tables}`, ...definition, ...told };
    const clock = { now: () => new Date() };
    await createDataTables({ database: rig.database, clock }).define(table, { replace });
    return table.name;
  }
  const insert = async (table: string, data: object, as = rig.acme) =>
    (await rig.ask('POST', `/api/public/tables/${table}`, { data }, { as })).json<object>();
  const get = (table: string, query: Record<string, string> = {}, ask: Ask = {}) =>
    rig.ask('GET', `/api/public/tables/${table}`, undefined, { query, ...ask });
  const pageOf = async (...asked: Parameters<typeof get>): Promise<Page> => {
    const response = await get(...asked);
    expect(response.statusCode, response.body).toBe(200);
    return response.json<Page>();
  };
  /** Reads every page, and returns the names in each. */
  async function walk(table: string, limit: number): Promise<readonly (readonly string[])[]> {
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const query = { limit: String(limit), ...(cursor === undefined ? {} : { cursor }) };
      const page = await pageOf(table, query);
      pages.push(page.rows.map(({ name }) => name));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return pages;
  }
  /** Many rows with the same time, as in a busy table. */
  const fill = async (table: string, count: number, name = `'row-' || i`) =>
    await rig.database.pool.query(
      `insert into data_rows
       select 'sys-' || gen_random_uuid(), 'acme', $1, jsonb_build_object('name', ${name}),
         at, at, 'app-1', 'app-1'
       from (select i, timestamptz '2026-11-20 09:30:00Z' + (i / 10) * interval '1 ms' as at
         from generate_series(1, $2::integer) i) made`,
      [table, count],
    );

  test('are returned as their insertion returned them, newest first', async () => {
    const table = await define();
    const first = await insert(table, { name: 'Jane', constructor: { deep: [1, null] } });
    await rig.database.pool.query(`update data_rows set created_on = created_on - interval '1 s'`);
    const second = await insert(table, { name: 'Joe' });

    const page = await pageOf(table);

    expect(page).toEqual({
      rows: [second, { ...first, Created_On: expect.stringMatching(/Z$/) as string }],
    });
  });

  test('come in pages, each row once, even if many have the same time', async () => {
    const table = await define();
    await fill(table, 25);

    const pages = await walk(table, 10);

    expect(pages.map((page) => page.length)).toEqual([10, 10, 5]);
    expect(new Set(pages.flat()).size).toBe(25);
    expect(pages[0]).toContain('row-25');
    expect((await walk(table, 25)).length).toBe(1);
    expect((await pageOf(table)).rows).toHaveLength(25);
  });

  test('that are inserted between two pages do not shift the pages', async () => {
    const table = await define();
    await fill(table, 4);
    const { nextCursor = '' } = await pageOf(table, { limit: '2' });

    await insert(table, { name: 'later' });

    const { rows } = await pageOf(table, { limit: '2', cursor: nextCursor });
    expect(rows.map(({ name }) => name)).not.toContain('later');
    expect(rows).toHaveLength(2);
  });

  test('that are large end a page early, and none is missing', async () => {
    const table = await define();
    await fill(table, 50, `repeat('x', 200000) || i`);

    const pages = await walk(table, 200);

    expect(pages.map((page) => page.length)).toEqual([42, 8]);
    expect(new Set(pages.flat()).size).toBe(50);
  });

  test('are returned as they were stored after the definition has changed', async () => {
    const table = await define();
    await insert(table, { name: 'Jane' });
    await define({ name: table, columns: [{ name: 'other', type: 'integer' }], replace: true });

    expect((await pageOf(table)).rows).toMatchObject([{ name: 'Jane' }]);
  });

  test('are readable only for apps that may write, whatever their scopes', async () => {
    const ours = await define({ writers: [rig.acme.appId] });
    await insert(ours, { name: 'Jane' });
    const statusOf = async (table: string, ask: Ask) => (await get(table, {}, ask)).statusCode;

    expect(await statusOf(ours, {})).toBe(200);
    expect(await statusOf(ours, { as: rig.powerless })).toBe(403);
    expect(await statusOf(ours, { as: rig.rival })).toBe(404);
    expect(await statusOf(ours, { as: undefined })).toBe(401);
    expect(await statusOf(ours, { scheme: 'apiKey' })).toBe(401);
    expect(await statusOf(ours, { headers: { accept: 'text/csv' } })).toBe(406);
    expect(await statusOf('never-defined', {})).toBe(404);
    expect(await statusOf('a%00', {})).toBe(404);
  });

  test('of a table of the same name in another account are not readable, nor are its cursors usable', async () => {
    const table = await define();
    await define({ name: table, accountId: 'rival' });
    await fill(table, 3);
    const { nextCursor = '' } = await pageOf(table, { limit: '1' });
    await insert(table, { name: 'of the rival' }, rig.rival);

    const own = await pageOf(table, {}, { as: rig.rival });
    expect(own.rows.map(({ name }) => name)).toEqual(['of the rival']);
    expect((await pageOf(table, { cursor: nextCursor }, { as: rig.rival })).rows).toEqual([]);
    expect((await pageOf(table)).rows).toHaveLength(3);
  });

  test.each([
    ['limit', { limit: '0' }],
    ['limit', { limit: '201' }],
    ['limit', { limit: 'ten' }],
    ['cursor', { cursor: 'x' }],
    ['cursor', { cursor: Buffer.from('1.sys-1').toString('base64url') }],
    [
      'cursor',
      { cursor: Buffer.from(`${'9'.repeat(15)}.sys-${'a'.repeat(36)}`).toString('base64url') },
    ],
    ['where', { where: '1=1' }],
  ])('a wrong %s is named: %j', async (path, query) => {
    const response = await get(await define(), query);

    expect(response.statusCode).toBe(400);
    expect(errorsOf(response)).toEqual([expect.stringMatching(`^${path}: `)]);
  });

  test.each([
    ['first', undefined],
    ['next', { createdOn: new Date(), sysId: 'sys-1' }],
  ])('of the %s page are found by an index, however many rows exist', async (_page, position) => {
    await fill('other', 5_000);
    await rig.database.pool.query('analyze data_rows');

    const statement = rowsStatement({ accountId: 'acme', name: 'table-1' }, 50, position);
    const plan = await planOf(rig.database.pool, statement);
    expect(plan).toMatch(/data_rows_by_table/);
    expect(plan).not.toMatch(/Seq Scan on data_rows/);
  });
});
