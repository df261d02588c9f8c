// DELETE removes a connection and its secrets for good, and never one of another account.

import { afterEach, describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { customApi, vendorA } from './connection-bodies.ts';
import { type Ask, startRig } from './support.ts';

const url = '/api/public/connections';

describe.each(databaseKinds)('deleting a connection on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  afterEach(() => rig.clear());

  const withKey = { scheme: 'apiKey' } as const;
  const create = async (body: object): Promise<string> => {
    const response = await rig.ask('POST', url, body, withKey);
    return response.json<{ connectionId: string }>().connectionId;
  };
  const remove = (id: string, ask: Ask = {}) =>
    rig.ask('DELETE', `${url}/${id}`, undefined, { ...withKey, ...ask });
  const stored = async () => {
    const { rows } = await rig.database.pool.query<{ id: string }>(
      'select connection_id as id from connections order by 1',
    );
    return rows;
  };

  test.each([
    ['of a provider', vendorA],
    ['of provider API, which cannot be updated', customApi],
  ])('removes a connection %s, and returns its id', async (_name, body) => {
    const kept = await create(vendorA);
    const id = await create(body);

    const response = await remove(id);

    expect([response.statusCode, response.json()]).toEqual([200, { connectionId: id }]);
    expect(await stored()).toEqual([{ id: kept }]);
    expect((await rig.ask('GET', `${url}/${id}`, undefined, withKey)).statusCode).toBe(404);
    expect((await remove(id)).statusCode).toBe(404);
  });

  test('accepts a content type, as every request about connections has, and no body', async () => {
    const headers = { 'content-type': 'application/json' };

    expect((await remove(await create(vendorA), { headers })).statusCode).toBe(200);
    const withBody = { ...withKey, headers };
    const response = await rig.ask('DELETE', `${url}/${await create(vendorA)}`, {}, withBody);
    expect(response.statusCode).toBe(200);
    expect(await stored()).toEqual([]);
  });

  test('requires an API key with the scope for creation', async () => {
    const id = await create(vendorA);
    const reader = await rig.addApp({ scopes: ['View Connections'] });
    const statusOf = async (ask: Ask) => (await remove(id, ask)).statusCode;

    expect(await statusOf({ as: reader })).toBe(403);
    expect(await statusOf({ scheme: 'jwt' })).toBe(401);
    expect(await statusOf({ as: undefined })).toBe(401);
    expect(await stored()).toEqual([{ id }]);
    expect(await statusOf({ as: await rig.addApp({ scopes: ['Manage Connections'] }) })).toBe(200);
  });

  test("does not find another account's connection or an invalid id, and deletes nothing", async () => {
    const id = await create(vendorA);

    expect((await remove(id, { as: rig.rival })).statusCode).toBe(404);
    expect((await remove('cn-1')).statusCode).toBe(404);
    expect((await remove('%00')).statusCode).toBe(400);
    expect((await remove(`${id}'--`)).statusCode).toBe(404);
    expect(await stored()).toEqual([{ id }]);
  });
});
