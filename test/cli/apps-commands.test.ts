// Tests `offhook apps` and `offhook bots` on PostgreSQL, through a gateway with the embedded
// database, and on the embedded database while no gateway runs.

import { generateKeyPairSync } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJwt, SignJWT } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createApp,
  limitApp,
  listApps,
  printToken,
  revokeApp,
  rotateApp,
} from '../../src/cli/apps-commands.ts';
import { type AddBotOptions, addBot, listBots } from '../../src/cli/bots-commands.ts';
import type { CliContext } from '../../src/cli/cli-context.ts';
import type { AppCredentials } from '../../src/store/apps/apps.ts';
import { streamIdsOf } from '../../src/streams/stream-ids.ts';
import { makeSeededDataDir, openTestDatabase } from '../support/databases.ts';
import { startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { printedBy } from './support.ts';

type Command = (context: CliContext) => Promise<void>;

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
const acme = { name: 'crm', account: 'acme', bots: '*' } as const;

type Place = {
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
};

async function onDatabase(kind: 'postgres' | 'pglite'): Promise<Place> {
  if (kind === 'pglite') {
    const dataDir = await makeSeededDataDir();
    return { env: { DATA_DIR: dataDir.path }, close: () => dataDir.remove() };
  }
  const database = await openTestDatabase(kind);
  const { databaseUrl = '', dataDir } = database.location;
  // The command opens the database itself.
  await database.close();
  return {
    env: { DATABASE_URL: databaseUrl, SECRETS_KEY: 'ab'.repeat(32), DATA_DIR: dataDir },
    close: () => database.remove(),
  };
}

type RunningPlace = Place & { readonly httpUrl: string };

async function onGateway(): Promise<RunningPlace> {
  const place = await onDatabase('pglite');
  const gateway = await startGateway(place.env['DATA_DIR'] ?? '');
  return {
    ...place,
    httpUrl: gateway.runtime.httpUrl,
    close: async () => {
      await gateway.terminate();
      await place.close();
    },
  };
}

const running = forSuite(onGateway);

const places: readonly [string, () => Promise<Place>][] = [
  ['PostgreSQL', () => onDatabase('postgres')],
  ['a gateway with the embedded database', async () => ({ ...running, close: async () => {} })],
];

describe.each(places)('commands on %s', (_name, open) => {
  const place = forSuite(open);

  const run = async (command: Command) => await printedBy(place.env, command);
  const made = async (command: Command) => JSON.parse((await run(command)).out) as AppCredentials;

  test('create, list, rotate and revoke an app', async () => {
    const creation = await run((context) => createApp(context, { ...acme, jwtAlgorithm: 'HS512' }));
    const created = JSON.parse(creation.out) as AppCredentials;
    const { appId } = created;
    const rotated = await run((context) => rotateApp(context, appId, 'jwt', { grace: '24h' }));
    const token = await run((context) => printToken(context, { app: appId, ttl: '1m' }));

    expect(Object.keys(created)).toContain('jwtSecret');
    expect(creation.notes).toContain(
      `account_sid ${streamIdsOf({ appId, callId: '', request: {} }).accountSid}`,
    );
    expect(rotated.notes).toMatch(/The old credential stays valid until 20\d\d-\d\d-\d\dT/);
    expect(JSON.parse(rotated.out)).toMatchObject({ appId });
    expect(rotated.out).not.toContain(created.jwtSecret);
    expect(decodeJwt(token.out)['appId']).toBe(appId);
    const listed = await run((context) => listApps(context, {}));
    expect(listed.out).toMatch(`${appId}  crm  account acme  bots *  HS512  scopes Dialout`);

    const revoked = await run((context) => revokeApp(context, appId));

    expect(revoked.notes).toContain(appId);
    expect((await run((context) => listApps(context, {}))).out).toMatch(
      /scopes Dialout {2}revoked/,
    );
    await expect(run((context) => printToken(context, { app: appId, ttl: '1m' }))).rejects.toThrow(
      '404: There is no such app',
    );
  });

  test('reject a second rotation within the grace time unless --force is given', async () => {
    const { appId } = await made((context) =>
      createApp(context, { ...acme, jwtAlgorithm: 'HS256' }),
    );
    const rotate = (force: boolean) =>
      run((context) => rotateApp(context, appId, 'webhook-secret', { grace: '24h', force }));
    const { notes } = await rotate(false);
    const [until = ''] = /20\d\d-\S+Z/.exec(notes) ?? [];

    await expect(rotate(false)).rejects.toThrow(
      `force: the previous one is accepted until ${until} and would end now; --force ends it`,
    );

    expect(Object.keys(JSON.parse((await rotate(true)).out) as object)).toContain('webhookSecret');
  });

  test('limit the lifetime of tokens to the limit of their app', async () => {
    const { appId } = await made((context) =>
      createApp(context, { ...acme, jwtAlgorithm: 'HS256' }),
    );
    const token = (ttl: string) => run((context) => printToken(context, { app: appId, ttl }));
    const limit = (tokenTtl: string) => run((context) => limitApp(context, appId, { tokenTtl }));

    await token('24h');
    await expect(token('25h')).rejects.toThrow(
      `ttlS: must be at most 86400, the maximum lifetime of this app's tokens; offhook apps limit ${appId} --token-ttl changes it`,
    );
    expect(JSON.parse((await limit('7d')).out)).toEqual({
      ...{ appId, limits: {} },
      tokenMaxTtlS: 7 * 86_400,
    });
    await token('7d');
    expect(JSON.parse((await limit('none')).out)).toEqual({ appId, limits: {} });
    await token('31d');
    expect((await run((context) => listApps(context, {}))).out).toMatch(
      new RegExp(`^${appId} .*  tokens without a cap$`, 'm'),
    );
    for (const wrong of ['59s', 'long', '99999999d']) {
      await expect(limit(wrong)).rejects.toThrow('--token-ttl must be e.g. 15m, 24h or 7d');
    }
  });

  test('accept the public key of an app, and replace it later', async () => {
    const keyFile = join(place.env['DATA_DIR'] ?? '', 'key.pem');
    const setFile = join(place.env['DATA_DIR'] ?? '', 'jwks.json');
    await writeFile(keyFile, pem);
    const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'a' }];
    await writeFile(setFile, JSON.stringify({ keys }));

    const { appId, ...credentials } = await made((context) =>
      createApp(context, { ...acme, jwtAlgorithm: 'EdDSA', publicKey: keyFile }),
    );
    expect(Object.keys(credentials)).not.toContain('jwtSecret');
    const rotated = await run((context) =>
      rotateApp(context, appId, 'jwt', { grace: '0s', jwks: setFile }),
    );
    expect(rotated.notes).toBe('The old credential is no longer valid.');
  });

  test.each<[string, Command, string | RegExp]>([
    [
      'a missing key',
      (context) => createApp(context, { ...acme, jwtAlgorithm: 'RS256' }),
      '400: One field is not valid; see errors.\n  publicKeys: RS256 needs a public key',
    ],
    [
      'a missing file',
      (context) => createApp(context, { ...acme, jwtAlgorithm: 'RS256', jwks: '/no/such/file' }),
      '/no/such/file cannot be read',
    ],
    [
      'an account that is not valid in a subject',
      (context) => createApp(context, { ...acme, account: 'a.b', jwtAlgorithm: 'HS256' }),
      /400: .*\n {2}accountId: must be 1 to 128 letters/,
    ],
    [
      'an invalid grace time',
      (context) => rotateApp(context, 'app-x', 'jwt', { grace: 'soon' }),
      '--grace must be e.g.',
    ],
    [
      'an unknown app',
      (context) => rotateApp(context, 'app-x', 'jwt', { grace: '1h' }),
      '404: There is no such app',
    ],
    [
      'a logo that is not a URL',
      (context) => addBot(context, 'b', { account: 'acme', icon: 'logo.png' }),
      /400: .*\n {2}iconUrl: must be an http or https URL/,
    ],
    [
      'a logo without a host',
      (context) => addBot(context, 'b', { account: 'acme', icon: 'https:///logo.png' }),
      /400: .*\n {2}iconUrl: must name a host after `\/\/`/,
    ],
    [
      'a stream URL that is not a WebSocket URL',
      (context) => addBot(context, 'b', { account: 'acme', streamUrl: 'https://b.example/' }),
      /400: .*\n {2}stream.url: must be a ws or wss URL/,
    ],
    [
      'a start time without a stream',
      (context) => addBot(context, 'b', { account: 'acme', streamConnect: 'person' }),
      /400: .*\n {2}stream.url: is required: the bot has no stream yet/,
    ],
    [
      'a recording that is no JSON',
      (context) => addBot(context, 'b', { account: 'acme', recording: 'yes' }),
      /--recording must be JSON/,
    ],
    [
      'a recording for a key that the account lacks',
      (context) => addBot(context, 'b', { account: 'acme', recording: '{"key":"crm"}' }),
      /400: .*\n {2}recording.key: the account has no key/,
    ],
    [
      'a recording with a setting that does not exist',
      (context) => addBot(context, 'b', { account: 'acme', recording: '{"fill":1}' }),
      /400: .*\n {2}recording.fill: must be one of silence, cut/,
    ],
    [
      'removing and changing a stream at once',
      (context) =>
        addBot(context, 'b', { account: 'acme', streamUrl: false, streamConnect: 'person' }),
      /--stream-connect cannot be combined/,
    ],
  ])('explain %s', async (_what, command, words) => {
    await expect(run(command)).rejects.toThrow(words);
  });

  test('register a bot for only one account', async () => {
    const add = (account: string) => (context: CliContext) =>
      addBot(context, 'shop', { account, stream: 'st-shop', icon: 'https://x.example/i.png' });

    await run(add('acme'));
    await run(add('acme'));
    await expect(run(add('rival'))).rejects.toThrow('the bot belongs to another account');

    expect((await run(listBots)).out).toBe(
      '{"botId":"shop","accountId":"acme","streamId":"st-shop","iconUrl":"https://x.example/i.png"}',
    );
  });
});

test('a bot’s recording is added, replaced and removed', async () => {
  const place = await onDatabase('pglite');
  onTestFinished(() => place.close());
  const recordingAfter = async (options: Partial<AddBotOptions>) => {
    const { out } = await printedBy(place.env, (context) =>
      addBot(context, 'talker', { account: 'acme', ...options }),
    );
    return (JSON.parse(out) as { readonly recording?: object }).recording;
  };
  expect(await recordingAfter({ recording: 'true' })).toEqual({});
  const recording = '{"from":"person","notifyurl":"https://crm.example/"}';
  const stored = { from: 'person', notifyUrl: 'https://crm.example/' };
  expect(await recordingAfter({ recording })).toEqual(stored);
  expect(await recordingAfter({ icon: 'https://x.example/i.png' })).toEqual(stored);
  expect(await recordingAfter({ recording: false })).toBeUndefined();
});

test('a bot’s stream is added, changed and removed, and its query is never printed', async () => {
  const place = await onDatabase('pglite');
  onTestFinished(() => place.close());
  const streamAfter = async (options: Partial<AddBotOptions>) => {
    const { out } = await printedBy(place.env, (context) =>
      addBot(context, 'talker', { account: 'acme', ...options }),
    );
    return (JSON.parse(out) as { readonly stream?: object }).stream;
  };
  const streamUrl = 'wss://bot.example/audio?key=s3cret';
  const url = 'wss://bot.example/audio?…';

  expect(await streamAfter({ streamUrl })).toEqual({ url, connect: 'answered' });
  expect(await streamAfter({ streamConnect: 'person' })).toEqual({ url, connect: 'person' });
  expect(await streamAfter({ icon: 'https://x.example/i.png' })).toEqual({
    url,
    connect: 'person',
  });
  const listed = await printedBy(place.env, listBots);
  expect(listed.out).toContain('"connect":"person"');
  expect(listed.out).not.toContain('s3cret');
  expect(await streamAfter({ streamUrl: false })).toBeUndefined();
});

test('commands open the embedded database themselves while no gateway runs', async () => {
  const place = await onDatabase('pglite');
  onTestFinished(() => place.close());

  const created = await printedBy(place.env, (context) =>
    createApp(context, { ...acme, jwtAlgorithm: 'HS256' }),
  );

  const { appId } = JSON.parse(created.out) as AppCredentials;
  const listed = await printedBy(place.env, (context) => listApps(context, { json: true }));
  expect(JSON.parse(listed.out)).toMatchObject({ appId, accountId: 'acme' });
});

describe('a running gateway', () => {
  const run = async (command: Command) => (await printedBy(running.env, command)).out;
  const statusOf = async (path: string, headers: Record<string, string>) =>
    (await fetch(`${running.httpUrl}${path}`, { headers })).status;
  const calls = '/api/public/bot/b1/calls';
  const connections = '/api/public/connections';
  const devApp = async () =>
    JSON.parse(
      await readFile(join(running.env['DATA_DIR'] ?? '', 'dev-app.json'), 'utf8'),
    ) as AppCredentials;

  test('accepts the credentials of an app until the app is revoked', async () => {
    const keyFile = join(running.env['DATA_DIR'] ?? '', 'key.pem');
    await writeFile(keyFile, pem);
    const app = JSON.parse(
      await run((context) =>
        createApp(context, {
          ...acme,
          scopes: 'Dialout, View Connections',
          jwtAlgorithm: 'EdDSA',
          publicKey: keyFile,
        }),
      ),
    ) as AppCredentials;
    const auth = await new SignJWT({ appId: app.appId })
      .setProtectedHeader({ alg: 'EdDSA' })
      .setExpirationTime('1m')
      .sign(privateKey);

    expect(await statusOf(calls, { auth })).toBe(200);
    expect(await statusOf(connections, { 'x-api-key': app.apiKey })).toBe(200);

    await run((context) => revokeApp(context, app.appId));

    expect(await statusOf(calls, { auth })).toBe(401);
    expect(await statusOf(connections, { 'x-api-key': app.apiKey })).toBe(401);
  });

  test('accepts old and new credentials of the dev app, and writes the new ones to its file', async () => {
    const before = await devApp();
    const oldToken = await run((context) => printToken(context, { ttl: '1m' }));
    for (const what of ['api-key', 'jwt', 'webhook-secret'] as const) {
      await run((context) => rotateApp(context, before.appId, what, { grace: '1h' }));
    }

    const after = await devApp();
    const newToken = await run((context) => printToken(context, { ttl: '1m' }));
    expect(after).toMatchObject({ appId: before.appId, accountId: 'dev', bots: ['*'] });
    for (const name of ['apiKey', 'jwtSecret', 'webhookSecret'] as const) {
      expect(after[name]).not.toBe(before[name]);
    }
    for (const app of [before, after]) {
      expect(await statusOf(connections, { 'x-api-key': app.apiKey })).toBe(200);
    }
    for (const auth of [oldToken, newToken]) expect(await statusOf(calls, { auth })).toBe(200);
  });

  test('limits the tokens of the dev app like those of any other app', async () => {
    const token = (ttl: string) => run((context) => printToken(context, { ttl }));

    expect(await statusOf(calls, { auth: await token('24h') })).toBe(200);
    await expect(token('7d')).rejects.toThrow('ttlS: must be at most 86400');
    const { appId, jwtSecret } = await devApp();
    const auth = await new SignJWT({ appId })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuedAt()
      .setExpirationTime('7d')
      .sign(Buffer.from(jwtSecret));
    expect(await statusOf(calls, { auth })).toBe(401);
  });

  test('knows a bot by its alias as soon as it is registered', async () => {
    await run((context) => addBot(context, 'store', { account: 'dev', stream: 'st-store' }));
    await run((context) => addBot(context, 'desk', { account: 'acme', stream: 'st-desk' }));
    const auth = await run((context) => printToken(context, { ttl: '1m' }));

    expect(await statusOf('/api/public/bot/st-store/calls', { auth })).toBe(200);
    expect(await statusOf('/api/public/bot/st-desk/calls', { auth })).toBe(404);
  });

  test('stores a call that was requested by the alias under the id of the bot', async () => {
    await run((context) => addBot(context, 'kiosk', { account: 'dev', stream: 'st-kiosk' }));
    const headers = {
      auth: await run((context) => printToken(context, { ttl: '1m' })),
      'content-type': 'application/json',
    };
    const busy = { target: 'tel:+12025550130', caller: '+12025550199' };
    const answer = await fetch(
      `${running.httpUrl}/api/1.1/public/bot/st-kiosk/V2/contactcenter/dialout`,
      { method: 'POST', headers, body: JSON.stringify({ bot: 'st-kiosk', ...busy }) },
    );
    const { callId } = (await answer.json()) as { callId: string };

    for (const name of ['kiosk', 'st-kiosk']) {
      const response = await fetch(`${running.httpUrl}/api/public/bot/${name}/calls`, { headers });
      expect(await response.json()).toMatchObject({ calls: [{ callId, botId: 'kiosk' }] });
    }
  });
});
