// Re-encryption of the stored secrets after SECRETS_KEY has changed, and the order in which
// gateways begin to use the new key.

import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { insertConnection } from '../../src/companion/connections/connection-store.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createAppStore } from '../../src/store/apps/apps.ts';
import { createBotDirectory } from '../../src/store/apps/bot-directory.ts';
import { openStreamUrl, sealStreamUrl } from '../../src/store/apps/stream-addresses.ts';
import { createCallLedger } from '../../src/store/calls/call-ledger.ts';
import { announceKeys, readRollout } from '../../src/store/key-rollout.ts';
import { createNodeStore } from '../../src/store/nodes.ts';
import {
  countForeignSecrets,
  createReencryption,
  type ReencryptionPage,
} from '../../src/store/reencryption.ts';
import { sealedColumns } from '../../src/store/sealed-columns.ts';
import { createSecretBox, keyIdIn, type SecretBox } from '../../src/store/secrets.ts';
import { acceptedCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { byteColumns, columnsWith } from '../support/sealed-values.ts';
import { insertRows } from '../support/tables.ts';

const [oldKey, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const clock = { now: () => new Date() };
const streamUrl = 'wss://bot.example/audio?key=s3cret';
const notifyHeaders = { 'X-Token': 'abc' };

const someNode = (nodeId: string) => ({ nodeId, version: '1', questionKey: 'key' });

/** Writes bytes as `insertRows` needs them. */
const asText = (bytes: Buffer) => `\\x${bytes.toString('hex')}`;

const oldBox = () => createSecretBox(oldKey);
const newBox = () => createSecretBox(newKey);
const bothKeys = () => createSecretBox({ current: newKey, previous: oldKey });

/** Stores a secret in every place, with the code that stores it in a gateway. */
async function fill(database: TestDatabase, secrets: SecretBox) {
  const apps = createAppStore({ database, secrets, clock, tokenMaxTtlS: 86_400 });
  const wanted = { name: 'dialer', accountId: 'acme', bots: ['*'], scopes: [] };
  const app = await apps.createApp(wanted);
  for (const what of ['jwt', 'stream', 'webhook-secret'] as const)
    await apps.rotate(app.appId, { what, graceS: 600 });
  const stream = { ...sealStreamUrl(secrets, 'shop', streamUrl), connect: 'person' as const };
  await createBotDirectory({ database, clock }).add({ botId: 'shop', accountId: 'acme', stream });
  const { pool } = database;
  await insertConnection(pool, {
    ...{ connectionId: 'one', accountId: 'acme', connectionName: 'one', provider: 'API' },
    ...{ model: '', status: 'ACTIVE', settings: {}, createdOn: new Date(), modifiedOn: new Date() },
    secrets: secrets.seal('connection', 'one', '{}'),
  });
  const { request, ...call } = acceptedCall({ botId: 'shop' });
  await ledgerOf(database, secrets).accept(
    { ...call, request: { ...request, stream: { ...stream, parameters: {} } } },
    { notifyHeaders },
  );
  return { app, callId: call.callId };
}

function ledgerOf(database: TestDatabase, secrets: SecretBox) {
  return createCallLedger({ database, secrets, logger: silentLogger, clock });
}

/** Opens every secret that `fill` stored. */
async function readAll(
  database: TestDatabase,
  secrets: SecretBox,
  { app, callId }: Awaited<ReturnType<typeof fill>>,
) {
  const apps = createAppStore({ database, secrets, clock, tokenMaxTtlS: 86_400 });
  const found = await apps.find(app.appId);
  const bot = await createBotDirectory({ database, clock }).find('shop');
  const { rows } = await database.pool.query<{ secrets: Buffer; request: { stream: never } }>(
    'select secrets, request from connections, calls where call_id = $1',
    [callId],
  );
  const [row] = rows;
  return {
    jwt: found?.jwtKeys,
    stream: found?.streamSecrets,
    webhook: await apps.webhookSecrets(app.appId),
    bot: bot?.stream && openStreamUrl(secrets, 'shop', bot.stream),
    call: row && openStreamUrl(secrets, 'shop', row.request.stream),
    connection: row && secrets.open('connection', 'one', row.secrets),
    headers: (await ledgerOf(database, secrets).callForNotifying([callId])).get(callId)
      ?.notifyHeaders,
  };
}

async function reencrypt(
  { pool }: TestDatabase,
  secrets: SecretBox,
  dryRun = false,
): Promise<readonly ReencryptionPage[]> {
  const reencryption = createReencryption(pool, secrets);
  const pages = [await reencryption.page({ dryRun })];
  for (let cursor = pages[0]?.next; cursor !== undefined; cursor = pages.at(-1)?.next)
    pages.push(await reencryption.page({ cursor, dryRun }));
  return pages;
}

function replacedIn(pages: readonly ReencryptionPage[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { column, replaced } of pages) counts[column] = (counts[column] ?? 0) + replaced;
  return counts;
}

describe.each(databaseKinds)('re-encryption on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  afterEach(() => database.clear());

  test('goes through every column that holds a sealed value', async () => {
    const box = newBox();
    await fill(database, box);

    const listed = sealedColumns.map(({ table, column }) => `${table}.${column}`);
    expect(await columnsWith(database.pool, box.headers.current)).toEqual(listed.toSorted());
  });

  test('no column of bytes is forgotten: it is sealed, or it holds no secret', async () => {
    const noSecrets = [
      ...['call_captures.audio', 'call_captures.notes', 'call_captures.sip', 'sounds.mulaw'],
    ];
    const sealed = sealedColumns.flatMap(({ table, column, path }) =>
      path === undefined ? [`${table}.${column}`] : [],
    );

    expect(await byteColumns(database.pool)).toEqual([...sealed, ...noSecrets].toSorted());
  });

  test('replaces every secret, and the old key is no longer needed', async () => {
    const stored = await fill(database, oldBox());
    const before = await readAll(database, oldBox(), stored);
    expect(before).toMatchObject({ bot: streamUrl, call: streamUrl, headers: notifyHeaders });
    expect(await readAll(database, bothKeys(), stored)).toEqual(before);

    const counted = replacedIn(await reencrypt(database, bothKeys(), true));
    expect(await columnsWith(database.pool, newBox().headers.current)).toEqual([]);
    const replaced = replacedIn(await reencrypt(database, bothKeys()));

    expect(replaced).toEqual(counted);
    expect(replaced).toEqual({
      ...{ 'apps.jwt_secret': 1, 'apps.previous_jwt_secret': 1 },
      ...{ 'apps.stream_secret': 1, 'apps.previous_stream_secret': 1 },
      ...{ 'webhook_secrets.secret': 2, 'bots.stream_query': 1 },
      ...{ 'calls.request.stream.sealedQuery': 1, 'calls.notify_headers': 1 },
      'connections.secrets': 1,
    });
    expect(await columnsWith(database.pool, oldBox().headers.current)).toEqual([]);
    expect(await readAll(database, newBox(), stored)).toEqual(before);
    expect(Object.values(replacedIn(await reencrypt(database, bothKeys())))).toEqual(
      Array(sealedColumns.length).fill(0),
    );
  });

  test('goes through many rows page by page, and a part that is done is not repeated', async () => {
    const secrets = oldBox();
    const ids = Array.from({ length: 2_300 }, (_, index) => `whs-${index}`);
    const rows = ids.map((secretId) => ({
      ...{ secretId, appId: 'app', createdAt: new Date() },
      secret: asText(secrets.seal('webhook-secret', secretId, `secret of ${secretId}`)),
    }));
    await insertRows(database.pool, 'webhook_secrets', rows);
    const reencryption = createReencryption(database.pool, bothKeys());
    let page = await reencryption.page({ dryRun: false });
    while (page.replaced === 0 && page.next !== undefined)
      page = await reencryption.page({ cursor: page.next, dryRun: false });
    expect(page).toMatchObject({ column: 'webhook_secrets.secret', replaced: 1_000 });

    // As if the process had been killed here.
    const again = await reencrypt(database, bothKeys());

    expect(replacedIn(again)['webhook_secrets.secret']).toBe(1_300);
    const { rows: stored } = await database.pool.query<{ secret_id: string; secret: Buffer }>(
      'select secret_id, secret from webhook_secrets',
    );
    const box = newBox();
    for (const { secret_id: id, secret } of stored)
      expect(box.open('webhook-secret', id, secret)).toBe(`secret of ${id}`);
  });

  test('leaves damaged values and those of an unknown key, and counts them', async () => {
    const secrets = oldBox();
    const damaged = secrets.seal('webhook-secret', 'damaged', 'x');
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
    const stranger = createSecretBox(randomBytes(32));
    const foreign = stranger.seal('webhook-secret', 'foreign', 'x');
    const row = { appId: 'app', createdAt: new Date() };
    await insertRows(database.pool, 'webhook_secrets', [
      { ...row, secretId: 'damaged', secret: asText(damaged) },
      { ...row, secretId: 'foreign', secret: asText(foreign) },
    ]);

    const pages = await reencrypt(database, bothKeys());

    const page = pages.find(({ column }) => column === 'webhook_secrets.secret');
    expect(page).toMatchObject({ replaced: 0, busy: 0 });
    expect(page?.unreadable).toEqual({
      damaged: 1,
      [`key ${keyIdIn(stranger.headers.current)}`]: 1,
    });
    const { rows } = await database.pool.query('select secret from webhook_secrets order by 1');
    expect(rows).toEqual(expect.arrayContaining([{ secret: damaged }, { secret: foreign }]));
  });

  test('a start finds the secrets of another key, as long as they are in use', async () => {
    const { app } = await fill(database, oldBox());
    const keyId = keyIdIn(oldBox().headers.current);

    expect(await countForeignSecrets(database.pool, bothKeys())).toEqual([]);
    const found = await countForeignSecrets(database.pool, newBox());
    expect(found).toContainEqual({
      ...{ column: 'apps.jwt_secret', keyId, count: 1, isRequired: true },
    });
    expect(found).toContainEqual({
      ...{ column: 'bots.stream_query', keyId, count: 1, isRequired: false },
    });
    await database.pool.query('update apps set revoked_at = now() where app_id = $1', [app.appId]);
    const left = await countForeignSecrets(database.pool, newBox());
    expect(left.filter(({ column }) => column.startsWith('apps.'))).toEqual([]);
  });

  test('if the key is lost, rotating the apps’ credentials lets gateways start again', async () => {
    const { app } = await fill(database, oldBox());
    const secrets = newBox();
    const apps = createAppStore({ database, secrets, clock, tokenMaxTtlS: 86_400 });

    for (const what of ['jwt', 'stream', 'webhook-secret'] as const)
      await apps.rotate(app.appId, { what, graceS: 0, force: true });

    const found = await countForeignSecrets(database.pool, secrets);
    expect(found.filter(({ isRequired }) => isRequired)).toEqual([]);
    expect((await apps.find(app.appId))?.jwtKeys).toHaveLength(1);
  });

  test('a gateway seals with the previous key until every node has the new one', async () => {
    const { pool } = database;
    const nodes: Readonly<Record<string, SecretBox>> = {
      'a/1': bothKeys(),
      'b/1': oldBox(),
      'c/1': newBox(),
    };
    for (const [ownerId, box] of Object.entries(nodes)) {
      const [nodeId = ''] = ownerId.split('/');
      await createNodeStore(database, ownerId, 60_000).register(someNode(nodeId));
      await announceKeys(pool, ownerId, box);
    }

    const rollout = () => readRollout(pool, bothKeys());
    expect(await rollout()).toEqual({ without: ['b'], notUsing: ['a', 'b'] });
    // A lost process may come back with its old configuration.
    await pool.query(`update nodes set lost_at = now() where owner_id = 'b/1'`);
    expect((await rollout()).without).toEqual(['b']);
    await createNodeStore(database, 'b/2', 60_000).register(someNode('b'));
    const switched = bothKeys();
    await announceKeys(pool, 'b/2', switched);
    expect(await rollout()).toEqual({ without: [], notUsing: ['a', 'b'] });
    switched.useCurrentKey();
    await announceKeys(pool, 'b/2', switched);
    expect(await rollout()).toEqual({ without: [], notUsing: ['a'] });
  });
});

test('re-encryption does not wait for a row that a gateway is changing, nor overwrite the change', async () => {
  await using database = await openTestDatabase('postgres');
  const { app } = await fill(database, oldBox());
  const client = await database.pool.connect();
  await client.query('begin');
  // A rotation moves the present secret to another column.
  const changed = oldBox().seal('jwt-secret', app.appId, 'changed');
  await client.query('update apps set jwt_secret = $1', [changed]);

  const beside = await reencrypt(database, bothKeys());
  await client.query('commit');
  client.release();
  const after = await reencrypt(database, bothKeys());

  expect(beside.find(({ column }) => column === 'apps.jwt_secret')).toMatchObject({
    ...{ replaced: 0, busy: 1 },
  });
  expect(replacedIn(after)).toMatchObject({ 'apps.jwt_secret': 1 });
  const { rows } = await database.pool.query<{ jwt_secret: Buffer }>('select jwt_secret from apps');
  expect(newBox().open('jwt-secret', app.appId, rows[0]?.jwt_secret ?? Buffer.alloc(0))).toBe(
    'changed',
  );
});
