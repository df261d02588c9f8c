// Connections to model providers: list, read, create, replace the key.

import { afterEach, describe, expect, test } from 'vitest';
import { newConnectionExamples } from '../../src/companion/connections/connection-examples.ts';
import { covers } from '../specification/covers.ts';
import type { SpecId } from '../specification/spec-ids.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { changed } from './changed.ts';
import {
  apiKey,
  customApi,
  everyShape,
  existingApi,
  hostedVendorA,
  maskedKey,
  onlyIn,
  secretTexts,
  vendorA,
  vendorB,
} from './connection-bodies.ts';
import { type Ask, errorsOf, problemOf, startRig } from './support.ts';

const url = '/api/public/connections';
const connectionId = /^cn-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

type Connection = { connectionId: string; connectionName: string; createdOn: string };

describe.each(databaseKinds)('connections on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  afterEach(() => rig.clear());

  const ask = (method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown, how: Ask = {}) =>
    rig.ask(method, url + path, body, { scheme: 'apiKey', ...how });
  const create = (body: unknown, how?: Ask) => ask('POST', '', body, how);
  const get = (id: string, how?: Ask) => ask('GET', `/${id}`, undefined, how);
  const list = (query: NonNullable<Ask['query']> = {}, how?: Ask) =>
    ask('GET', '', undefined, { query, ...how });
  const update = (id: string, body: unknown, how?: Ask) => ask('PATCH', `/${id}`, body, how);
  const idOf = async (body: unknown, how?: Ask): Promise<string> =>
    (await create(body, how)).json<Connection>().connectionId;

  describe('create', () => {
    test('returns the connection with its secret masked, without modifiedOn', async () => {
      covers(
        'connections.create.response.connectionId',
        'connections.create.response.fields',
        'connections.create.response.connectionName',
        'connections.create.response.provider',
        'connections.create.response.model',
        'connections.create.response.status',
        'connections.create.response.createdOn',
        'connections.create.rule.VendorA-AI',
      );
      const response = await create(vendorA);

      expect(response.statusCode).toBe(200);
      expect(response.json()).toEqual({
        connectionId: expect.stringMatching(connectionId),
        fields: { API_KEY: maskedKey },
        connectionName: 'Summaries',
        provider: 'VendorA AI',
        model: 'large-2',
        status: 'ACTIVE',
        createdOn: expect.stringMatching(instant),
      });
    });

    const shapes: readonly [SpecId, keyof typeof everyShape][] = [
      ['connections.create.rule.VendorA-AI', 'vendorA'],
      ['connections.create.rule.VendorB', 'vendorB'],
      ['connections.create.rule.HostedVendorA-AI', 'hostedVendorA'],
      ['connections.create.rule.API-custom', 'customApi'],
      ['connections.create.rule.API-existing', 'existingApi'],
    ];
    test.each(shapes)('%s: accepts the complete body and returns its fields', async (id, name) => {
      covers(id);
      const { fields, provider } = everyShape[name];

      const response = await create(everyShape[name]);

      expect(response.json()).toMatchObject({
        provider,
        fields: { ...fields, API_KEY: maskedKey },
        status: 'ACTIVE',
      });
      expect(response.statusCode).toBe(200);
    });

    test.each(['customApi', 'existingApi'] as const)(
      '%s: stores every member, and secrets only encrypted',
      async (name) => {
        const { provider: _, connectionName: __, ...settings } = everyShape[name];
        const id = await idOf(everyShape[name]);

        const { rows } = await rig.database.pool.query<{ settings: unknown; secrets: Buffer }>(
          'select settings, secrets from connections',
        );

        const headers = [
          { key: 'authorization', value: 'B************7' },
          { key: 'x-team', value: '************' },
        ];
        expect(rows[0]?.settings).toEqual({
          ...settings,
          fields: { ...settings.fields, API_KEY: maskedKey },
          LLM_API_KEY: 'l************8',
          headers,
        });
        const secrets = rig.secrets.open('connection', id, rows[0]?.secrets ?? Buffer.alloc(0));
        expect(JSON.parse(secrets)).toEqual({
          fields: { API_KEY: apiKey },
          LLM_API_KEY: settings.LLM_API_KEY,
          headers: settings.headers.map(({ value }) => value),
        });
      },
    );

    test.each(newConnectionExamples)(
      'accepts the example of $provider, $connectionName',
      async (body) => {
        expect((await create(body)).statusCode).toBe(200);
      },
    );

    // The removed member, its body, and the member that the 400 names.
    const required: readonly [SpecId, object, string][] = [
      ['connections.create.body.provider', vendorA, 'provider'],
      ['connections.create.body.connectionName', vendorA, 'connectionName'],
      ['connections.create.body.fields', vendorA, 'fields'],
      ['connections.create.body.model', vendorA, 'model'],
      ['connections.create.body.model', vendorB, 'model'],
      ['connections.create.body.model', hostedVendorA, 'model'],
      ['connections.create.body.modelType', vendorB, 'modelType'],
      ['connections.create.body.modelType', hostedVendorA, 'modelType'],
      ['connections.create.body.fields.API_KEY', vendorA, 'fields.API_KEY'],
      ['connections.create.body.fields.API_KEY', vendorB, 'fields.API_KEY'],
      ['connections.create.body.fields.API_KEY', hostedVendorA, 'fields.API_KEY'],
      ['connections.create.body.fields.API_KEY', customApi, 'fields.API_KEY'],
      ['connections.create.body.fields.API_KEY', existingApi, 'fields.API_KEY'],
      ['connections.create.body.fields.api_version', hostedVendorA, 'fields.api_version'],
      [
        'connections.create.body.fields.your_resource_name',
        hostedVendorA,
        'fields.your_resource_name',
      ],
      ['connections.create.body.fields.deployment_id', hostedVendorA, 'fields.deployment_id'],
      ['connections.create.body.fields.BASE_URL', customApi, 'fields.BASE_URL'],
      ['connections.create.body.fields.BASE_URL', existingApi, 'fields.BASE_URL'],
      ['connections.create.body.fields.MODEL_NAME', customApi, 'fields.MODEL_NAME'],
      ['connections.create.body.fields.MODEL_NAME', existingApi, 'fields.MODEL_NAME'],
      ['connections.create.body.LLM_API_URL', customApi, 'LLM_API_URL'],
      ['connections.create.body.LLM_API_URL', existingApi, 'LLM_API_URL'],
      ['connections.create.body.LLM_API_KEY', customApi, 'LLM_API_KEY'],
      ['connections.create.body.LLM_API_KEY', existingApi, 'LLM_API_KEY'],
      ['connections.create.body.fields.IOMapping', onlyIn('fields'), 'fields.IOMapping'],
      ['connections.create.body.fields.mapProvider', onlyIn('fields'), 'fields.mapProvider'],
      ['connections.create.body.IOMappings', onlyIn('body'), 'IOMappings'],
      ['connections.create.body.mapProvider', onlyIn('body'), 'mapProvider'],
    ];
    test.each(required)('%s is required', async (id, body, path) => {
      covers(id);
      const response = await create(changed(body, path, undefined));

      expect(response.statusCode).toBe(400);
      const named = path.replace(/^(mapProvider|IOMapping)s?$/, 'fields.$1');
      expect(problemOf(response).errors?.map((error) => error.path)).toEqual([named]);
    });

    // A member, and a value that is not valid for it.
    const wrong: readonly [SpecId, object, string, unknown][] = [
      ['connections.create.body.provider', vendorA, 'provider', 'VendorC'],
      ['connections.create.body.connectionName', vendorA, 'connectionName', ''],
      ['connections.create.body.modelType', vendorB, 'modelType', 'HARD_INTEGRATION'],
      ['connections.create.body.fields', vendorA, 'fields', 'API_KEY'],
      ['connections.create.body.fields.API_KEY', vendorA, 'fields.API_KEY', 7],
      ['connections.create.body.fields.BASE_URL', customApi, 'fields.BASE_URL', 'models'],
      ['connections.create.body.endpointUrl', customApi, 'endpointUrl', 'ftp://models.example'],
      ['connections.create.body.endpointUrl', customApi, 'endpointUrl', 'https://a:b@c.example'],
      ['connections.create.body.headers', customApi, 'headers', { authorization: 'x' }],
      ['connections.create.body.headers', customApi, 'headers.0.key', 'no header'],
      ['connections.create.body.headers', customApi, 'headers.0.value', 'a\r\nb: c'],
      ['connections.create.body.status', customApi, 'status', 'ACTIVE'],
      ['connections.create.body.isEnable', customApi, 'isEnable', 'false'],
      ['connections.create.body.promptVars', customApi, 'promptVars', {}],
      ['connections.create.body.promptVars.name', customApi, 'promptVars.0.name', 7],
      ['connections.create.body.promptVars.displayName', customApi, 'promptVars.0.displayName', 7],
      ['connections.create.body.promptVars.status', customApi, 'promptVars.0.status', 'on'],
      ['connections.create.body.promptVars.dataType', customApi, 'promptVars.0.dataType', 7],
      ['connections.create.body.promptVars.elementType', customApi, 'promptVars.0.elementType', 7],
      [
        'connections.create.body.promptVars.defaultValue',
        customApi,
        'promptVars.0.defaultValue',
        '\u0000',
      ],
      ['connections.create.body.promptVars.required', customApi, 'promptVars.0.required', 1],
      ['connections.create.body.promptVars.examples', customApi, 'promptVars.0.examples', []],
      ['connections.create.body.customVars', customApi, 'customVars', 'none'],
      ['connections.create.body.payload', customApi, 'payload', []],
      ['connections.create.body.outputPath', customApi, 'outputPath', ['choices']],
      ['connections.create.body.inputTokensPath', customApi, 'inputTokensPath', 7],
      ['connections.create.body.outputTokensPath', customApi, 'outputTokensPath', 7],
      ['connections.create.body.idp', existingApi, 'idp', 'oauth'],
      ['connections.create.body.bodyTab', existingApi, 'bodyTab', 'raw'],
      ['connections.create.body.mapProvider', existingApi, 'mapProvider', 'vendorDModel'],
      ['connections.create.body.fields.mapProvider', existingApi, 'fields.mapProvider', 'VendorB'],
      ['connections.create.body.fields.IOMapping', existingApi, 'fields.IOMapping', 'textToAudio'],
      ['connections.create.body.llmFeatures', existingApi, 'llmFeatures', ['streaming']],
      ...(
        [
          'toolCalling',
          'supportTools',
          'parallelToolCalling',
          'structuredResponse',
          'dataGeneration',
          'streaming',
        ] as const
      ).map(
        (name) =>
          [
            `connections.create.body.llmFeatures.${name}`,
            existingApi,
            `llmFeatures.${name}`,
            'yes',
          ] as [SpecId, object, string, unknown],
      ),
      ['connections.create.body.IOMappings', existingApi, 'IOMappings', 'textToText'],
      ['connections.create.body.IOMappings', existingApi, 'IOMappings.1', 'textToAudio'],
    ];
    test.each(wrong)('%s is checked', async (id, body, path, value) => {
      covers(id);
      const response = await create(changed(body, path, value));

      expect(response.statusCode).toBe(400);
      expect(problemOf(response).errors?.map((error) => error.path)).toEqual([path]);
    });

    test('lists the providers', async () => {
      const response = await create({ ...vendorA, provider: 'VendorC' });

      expect(errorsOf(response)).toEqual([
        'provider: must be one of API, VendorA AI, HostedVendorA AI, VendorB',
      ]);
    });

    const strangers: readonly [string, object, string][] = [
      [
        'a field of another provider',
        changed(vendorA, 'fields.deployment_id', 'x'),
        'fields.deployment_id',
      ],
      [
        'a member of another provider',
        { ...vendorB, endpointUrl: 'https://a.example' },
        'endpointUrl',
      ],
      ['a misspelling', { ...customApi, isenable: false }, 'isenable'],
      ['what the service assigns', { ...vendorA, connectionId: 'cn-1' }, 'connectionId'],
      ['an account', { ...vendorA, accountId: 'rival' }, 'accountId'],
      ['an unknown feature', changed(existingApi, 'llmFeatures.magic', true), 'llmFeatures.magic'],
      ['a member called like one that every object has', { ...vendorA, toString: 'x' }, 'toString'],
    ];
    test.each(strangers)('refuses %s by name', async (_name, body, path) => {
      const response = await create(body);

      expect(response.statusCode).toBe(400);
      expect(errorsOf(response)).toEqual([`${path}: is not known`]);
    });

    test('refuses members of both forms of provider API', async () => {
      const response = await create({ ...customApi, idp: 'none' });

      expect(errorsOf(response)).toContain(
        'payload: belongs to the custom-provider form, idp to the existing-provider form',
      );
      expect(response.statusCode).toBe(400);
    });

    test('accepts the model endpoint in fields too, and in both places only if they agree', async () => {
      const { LLM_API_URL, LLM_API_KEY, ...rest } = customApi;
      const inside = { ...rest, fields: { ...rest.fields, LLM_API_URL, LLM_API_KEY } };

      const response = await create(inside);

      expect(response.json()).toMatchObject({
        fields: { LLM_API_URL, LLM_API_KEY: 'l************8' },
      });
      expect((await create({ ...inside, LLM_API_URL })).statusCode).toBe(200);
      expect(errorsOf(await create({ ...inside, LLM_API_KEY: 'another' }))).toEqual([
        'fields.LLM_API_KEY: differs from LLM_API_KEY beside fields',
      ]);
    });

    test('accepts the mapping only in fields, and only beside it', async () => {
      covers('connections.create.rule.API-existing');
      covers('connections.create.body.mapProvider', 'connections.create.body.IOMappings');
      for (const place of ['fields', 'body'] as const) {
        const body = onlyIn(place);
        const response = await create(body);

        expect([place, response.statusCode]).toEqual([place, 200]);
        const { IOMapping, mapProvider } = response.json<{ fields: Record<string, string> }>()
          .fields;
        expect({ IOMapping, mapProvider }).toEqual(
          place === 'body' ? {} : { IOMapping: 'textToText', mapProvider: 'vendorAModel' },
        );
      }
      const noMapping = await create({ ...onlyIn('body'), IOMappings: [] });
      expect(errorsOf(noMapping)).toEqual([
        expect.stringContaining('fields.IOMapping: is required'),
      ]);
    });

    test('refuses a mapping beside fields that differs from the one in fields', async () => {
      const provider = await create({ ...existingApi, mapProvider: 'vendorBModel' });
      const mapping = await create({ ...existingApi, IOMappings: ['imageToText'] });

      expect(errorsOf(provider)).toEqual(['mapProvider: differs from fields.mapProvider']);
      expect(errorsOf(mapping)).toEqual(['IOMappings: must contain fields.IOMapping']);
    });

    test('the model of provider API is its MODEL_NAME, unless the body names another', async () => {
      expect((await create(customApi)).json()).toMatchObject({ model: 'house-7b' });
      expect((await create({ ...customApi, model: 'x' })).json()).toMatchObject({ model: 'x' });
    });

    test('a FINALIZED connection is returned as ACTIVE, or as INACTIVE if it is not enabled', async () => {
      covers('connections.create.body.status', 'connections.create.body.isEnable');
      const { isEnable: _, status: __, ...silent } = customApi;
      const enabled = await create(customApi);
      const disabled = await create({ ...existingApi, isEnable: false });

      expect(enabled.json()).toMatchObject({ status: 'ACTIVE' });
      expect(disabled.json()).toMatchObject({ status: 'INACTIVE' });
      expect((await create(silent)).json()).toMatchObject({ status: 'ACTIVE' });
      expect((await get(disabled.json<Connection>().connectionId)).json()).toMatchObject({
        status: 'INACTIVE',
      });
    });

    test('a body of another type is a 415, and an invalid body a 400', async () => {
      covers('connections.create.header.Content-Type', 'service.data.rule.json');
      const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } };

      expect((await create('provider=API', form)).statusCode).toBe(415);
      expect((await create('{')).statusCode).toBe(400);
      expect((await create('[]')).statusCode).toBe(400);
      expect((await create('null')).statusCode).toBe(400);
      expect((await ask('POST', '')).statusCode).toBe(400);
    });

    const hostile: readonly [string, unknown][] = [
      ['U+0000 in a name', { ...vendorA, connectionName: 'a\u0000b' }],
      ['half a surrogate pair in a model', { ...vendorA, model: 'a\ud800' }],
      ['a name of 100,000 characters', { ...vendorA, connectionName: 'x'.repeat(100_000) }],
      ['U+0000 deep in the payload', { ...customApi, payload: { a: [{ b: '\u0000' }] } }],
      ['U+0000 as a name in the payload', { ...customApi, payload: { 'a\u0000': 1 } }],
      ['half a surrogate pair in the payload', { ...customApi, payload: { a: '\udc00' } }],
      [
        'a deep payload',
        JSON.stringify(customApi).replace('0.2', '['.repeat(9_000) + ']'.repeat(9_000)),
      ],
      ['a payload of 65 KiB', { ...customApi, payload: { a: 'x'.repeat(65 * 1_024) } }],
      ['a number beyond all numbers', JSON.stringify(customApi).replace('0.2', '1e999')],
      [
        'a number out of range in customVars',
        JSON.stringify(customApi).replace('"anything"', '-1e999'),
      ],
      ['a prototype', JSON.stringify(vendorA).replace('"fields"', '"__proto__":{"x":1},"fields"')],
      [
        'a prototype in the payload',
        JSON.stringify(customApi).replace('"temperature"', '"__proto__":{},"t"'),
      ],
      [
        'a constructor',
        JSON.stringify(customApi).replace('"temperature":0.2', '"constructor":{"prototype":{}}'),
      ],
      [
        'a hundred thousand headers',
        { ...customApi, headers: Array.from({ length: 80_000 }, () => 1) },
      ],
      [
        'a hundred mappings',
        { ...existingApi, IOMappings: Array.from({ length: 100 }, () => 'textToText') },
      ],
      ['a key with a line break', changed(vendorA, 'fields.API_KEY', 'sk-1\r\nx: y')],
      ['the mask of a key', changed(vendorA, 'fields.API_KEY', maskedKey)],
    ];
    test.each(hostile)('%s is a 400 that stays short', async (_name, body) => {
      const response = await create(body);

      expect(response.statusCode).toBe(400);
      expect(response.body.length).toBeLessThan(20_000);
      expect((await list()).json()).toMatchObject({ total: 0 });
    });

    test('names that look like code and extreme numbers are kept unchanged', async () => {
      const payload = { toString: 1e308, 'a.b[0]': "'; drop table connections; --", '': -0.5 };
      const connectionName = "Robert'); drop table connections; -- $1 🐎";

      const response = await create({ ...customApi, connectionName, payload });

      const { rows } = await rig.database.pool.query(
        "select settings->'payload' as payload from connections",
      );
      expect(response.json()).toMatchObject({ connectionName });
      expect(rows).toEqual([{ payload }]);
    });
  });

  describe('get', () => {
    test('returns the complete connection with its secrets masked', async () => {
      covers(
        'connections.get.path.connectionId',
        'connections.get.response.connectionId',
        'connections.get.response.connectionName',
        'connections.get.response.provider',
        'connections.get.response.model',
        'connections.get.response.status',
        'connections.get.response.fields',
        'connections.get.response.createdOn',
        'connections.get.response.modifiedOn',
        'service.data.rule.timestamps',
      );
      const created = (await create(hostedVendorA)).json<Connection>();

      const response = await get(created.connectionId);

      expect(response.statusCode).toBe(200);
      expect(response.json()).toEqual({
        connectionId: created.connectionId,
        connectionName: 'Hosted',
        provider: 'HostedVendorA AI',
        model: 'large-2',
        status: 'ACTIVE',
        fields: { ...hostedVendorA.fields, API_KEY: maskedKey },
        createdOn: created.createdOn,
        modifiedOn: created.createdOn,
      });
    });

    test.each([
      ['of one character', '1', '************'],
      ['of eleven', 'elevenchars', '************'],
      ['of twelve', 'twelve-chars', 't************s'],
      ['of 4,096', 'k'.repeat(4_096), 'k************k'],
    ])(
      'a key %s shows at most its first and last character, and not its length',
      async (_length, key, masked) => {
        const id = await idOf(changed(vendorB, 'fields.API_KEY', key));

        expect((await get(id)).json()).toMatchObject({ fields: { API_KEY: masked } });
      },
    );

    test.each(['cn-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10', 'cn-1', 'nonsense', "';--", 'toString'])(
      '%s is a 404',
      async (id) => {
        expect((await get(id)).statusCode).toBe(404);
        expect((await update(id, { fields: { API_KEY: 'new' } })).statusCode).toBe(404);
      },
    );

    test('an id with a control character is a 400 that names it', async () => {
      const answer = await get('cn-%00');

      expect(answer.statusCode).toBe(400);
      expect(answer.json()).toMatchObject({ errors: [{ path: 'connectionId' }] });
    });
  });

  describe('list', () => {
    test('has every connection without its fields, newest first', async () => {
      covers(
        'connections.list.response.connections',
        'connections.list.response.total',
        'connections.list.response.connectionId',
        'connections.list.response.connectionName',
        'connections.list.response.provider',
        'connections.list.response.model',
        'connections.list.response.status',
        'connections.list.response.createdOn',
        'connections.list.response.modifiedOn',
      );
      const ids = [];
      for (const body of Object.values(everyShape)) ids.push(await idOf(body));

      const response = await list();

      const { connections, total } = response.json<{ connections: Connection[]; total: number }>();
      expect(total).toBe(5);
      expect(connections.map((item) => item.connectionId).sort()).toEqual(ids.sort());
      const instants = connections.map((item) => item.createdOn);
      expect(instants).toEqual(instants.toSorted().toReversed());
      expect(connections.find((item) => item.connectionName === 'Hosted')).toEqual({
        connectionId: expect.stringMatching(connectionId),
        connectionName: 'Hosted',
        provider: 'HostedVendorA AI',
        model: 'large-2',
        status: 'ACTIVE',
        createdOn: expect.stringMatching(instant),
        modifiedOn: expect.stringMatching(instant),
      });
    });

    test('filters by provider and status; total ignores the limit', async () => {
      covers(
        'connections.list.query.provider',
        'connections.list.query.status',
        'connections.list.query.limit',
        'connections.list.response.total',
      );
      for (const body of Object.values(everyShape)) await create(body);
      await create({ ...customApi, isEnable: false });
      const matching = async (query: Record<string, string>) => {
        const answer = (await list(query)).json<{ connections: object[]; total: number }>();
        return [answer.connections.length, answer.total];
      };

      expect(await matching({ provider: 'API' })).toEqual([3, 3]);
      expect(await matching({ provider: 'VendorA AI' })).toEqual([1, 1]);
      expect(await matching({ status: 'ACTIVE' })).toEqual([5, 5]);
      expect(await matching({ status: 'INACTIVE' })).toEqual([1, 1]);
      expect(await matching({ status: 'INACTIVE', provider: 'VendorB' })).toEqual([0, 0]);
      expect(await matching({ limit: '2' })).toEqual([2, 6]);
      expect(await matching({ limit: '2', provider: 'API', status: 'ACTIVE' })).toEqual([2, 2]);
      expect(await matching({ limit: '1000' })).toEqual([6, 6]);
    });

    test.each([
      { provider: 'VendorC' },
      { status: 'FINALIZED' },
      { limit: '0' },
      { limit: '1001' },
      { limit: '1.5' },
      { limit: '99999' },
      { limit: '1e999' },
      { limit: '' },
      { provider: ['API', 'VendorB'] },
      { providers: 'API' },
    ])('%j is a 400 that names the parameter', async (query) => {
      const response = await list(query);

      expect(response.statusCode).toBe(400);
      expect(problemOf(response).errors?.map(({ path }) => path)).toEqual(Object.keys(query));
    });
  });

  describe('update', () => {
    test('replaces the key and returns the connection without createdOn', async () => {
      covers(
        'connections.update.path.connectionId',
        'connections.update.body.fields',
        'connections.update.response.connectionId',
        'connections.update.response.fields',
        'connections.update.response.connectionName',
        'connections.update.response.provider',
        'connections.update.response.model',
        'connections.update.response.status',
        'connections.update.response.modifiedOn',
      );
      const { connectionId: id, createdOn } = (await create(hostedVendorA)).json<Connection>();

      const response = await update(id, { fields: { API_KEY: 'nk-the-next-secret-0' } });

      expect(response.statusCode).toBe(200);
      const fields = { ...hostedVendorA.fields, API_KEY: 'n************0' };
      expect(response.json()).toEqual({
        connectionId: id,
        fields,
        connectionName: 'Hosted',
        provider: 'HostedVendorA AI',
        model: 'large-2',
        status: 'ACTIVE',
        modifiedOn: expect.stringMatching(instant),
      });
      const { modifiedOn } = response.json<{ modifiedOn: string }>();
      expect((await get(id)).json()).toMatchObject({ fields, createdOn, modifiedOn });
      const { rows } = await rig.database.pool.query('select secrets from connections');
      expect(JSON.parse(rig.secrets.open('connection', id, rows[0].secrets))).toEqual({
        fields: { API_KEY: 'nk-the-next-secret-0' },
      });
    });

    test('is refused for provider API, and changes nothing', async () => {
      covers('connections.update.rule.not-API');
      const id = await idOf(customApi);
      const before = (await get(id)).json<object>();

      const response = await update(id, { fields: { API_KEY: 'nk-the-next-secret-0' } });

      expect(response.statusCode).toBe(400);
      expect(problemOf(response).detail).toMatch(/provider `API` cannot be updated/);
      expect((await get(id)).json()).toEqual(before);
    });

    test.each([
      ['nothing', {}, ['fields']],
      ['no key', { fields: {} }, ['fields.API_KEY']],
      ['another field', { fields: { API_KEY: 'a', api_version: '2' } }, ['fields.api_version']],
      ['another member', { fields: { API_KEY: 'a' }, connectionName: 'b' }, ['connectionName']],
      ['a masked key', { fields: { API_KEY: maskedKey } }, ['fields.API_KEY']],
      ['an empty key', { fields: { API_KEY: '' } }, ['fields.API_KEY']],
    ])('%s is a 400 that names the member', async (_name, body, paths) => {
      const id = await idOf(vendorA);

      const response = await update(id, body);

      expect(response.statusCode).toBe(400);
      expect(problemOf(response).errors?.map(({ path }) => path)).toEqual(paths);
    });

    test('a body that is not JSON is a 415', async () => {
      covers('connections.update.header.Content-Type');
      const id = await idOf(vendorA);

      const response = await update(id, 'x', { headers: { 'content-type': 'text/plain' } });

      expect(response.statusCode).toBe(415);
    });
  });

  describe('access', () => {
    test('requires an API key, and accepts no token', async () => {
      covers(
        'service.auth.rule.api-key',
        'connections.list.header.x-api-key',
        'connections.get.header.x-api-key',
        'connections.create.header.x-api-key',
        'connections.update.header.x-api-key',
      );
      const id = await idOf(vendorA);
      const body = { fields: { API_KEY: 'nk-1' } };
      const statuses = async (how: Ask) =>
        (
          await Promise.all([
            list({}, how),
            get(id, how),
            create(vendorA, how),
            update(id, body, how),
          ])
        ).map((response) => response.statusCode);

      expect(await statuses({ scheme: 'jwt' })).toEqual([401, 401, 401, 401]);
      expect(await statuses({ as: undefined })).toEqual([401, 401, 401, 401]);
      const wrong = { as: undefined, headers: { 'x-api-key': 'ofk_wrong' } };
      expect(await statuses(wrong)).toEqual([401, 401, 401, 401]);
      expect(await statuses({})).toEqual([200, 200, 200, 200]);
    });

    test('requires one scope to read and another one to write', async () => {
      covers(
        'connections.list.rule.scope',
        'connections.get.rule.scope',
        'connections.create.rule.scope',
        'connections.update.rule.scope',
      );
      const reader = await rig.addApp({ scopes: ['View Connections'] });
      const writer = await rig.addApp({ scopes: ['Manage Connections'] });
      const id = await idOf(vendorA);
      const statuses = async (how: Ask) => [
        (await list({}, how)).statusCode,
        (await get(id, how)).statusCode,
        (await create(vendorA, how)).statusCode,
        (await update(id, { fields: { API_KEY: 'nk-1' } }, how)).statusCode,
      ];

      expect(await statuses({ as: reader })).toEqual([200, 200, 403, 403]);
      expect(await statuses({ as: writer })).toEqual([403, 403, 200, 200]);
      expect(await statuses({ as: rig.powerless })).toEqual([403, 403, 403, 403]);
    });

    test("another account's connections are not found", async () => {
      const id = await idOf(vendorA);
      const before = (await get(id)).json<object>();
      const how = { as: rig.rival };

      expect((await get(id, how)).statusCode).toBe(404);
      expect((await update(id, { fields: { API_KEY: 'nk-1' } }, how)).statusCode).toBe(404);
      expect((await list({}, how)).json()).toEqual({ connections: [], total: 0 });
      expect((await get(id)).json()).toEqual(before);
      await idOf(vendorB, how);
      expect((await list()).json()).toMatchObject({ total: 1 });
    });
  });

  test('no secret is in a response, an error, a log or a stored row', async () => {
    const answers: string[] = [];
    const keep = (response: { readonly body: string }): void => {
      answers.push(response.body);
    };
    for (const body of Object.values(everyShape)) {
      keep(await create(body));
      keep(await create({ ...body, provider: 'VendorC' }));
      keep(await create({ ...body, connectionName: '' }));
      keep(await create({ ...body, connectionName: 'a\u0000' }));
      keep(await create(`${JSON.stringify(body).slice(0, -1)},}`));
      keep(await create(JSON.stringify(body).replace('"fields"', '"__proto__":1,"fields"')));
      keep(await create(changed(body, 'fields.API_KEY', [apiKey])));
      keep(await create(changed(body, 'fields.API_KEY', `${apiKey}\n`)));
    }
    keep(await list());
    const id = await idOf(vendorB);
    keep(await update(id, { fields: { API_KEY: 'nk-the-next-secret-0' } }));
    keep(await update(id, { fields: { API_KEY: ['nk-the-next-secret-0'] } }));
    keep(await get(id));
    // The database refuses the row. The log must not contain it.
    await rig.database.pool.query(
      'alter table connections add constraint no check (name <> $$no$$)',
    );
    const failed = await create({ ...customApi, connectionName: 'no' });
    keep(failed);
    await rig.database.pool.query('alter table connections drop constraint no');
    const { rows } = await rig.database.pool.query('select * from connections');

    expect(failed.statusCode).toBe(500);
    expect(rig.logged()).toContain('request failed');
    const texts = [
      answers.join('\n'),
      rig.logged(),
      JSON.stringify(rows),
      rows.map(({ secrets }) => String(secrets)).join(),
    ];
    for (const text of texts) {
      for (const secret of secretTexts) expect(text).not.toContain(secret);
    }
  });
});
