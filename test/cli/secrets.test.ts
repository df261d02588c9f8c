// Tests `offhook secrets reencrypt` on PostgreSQL, with the keys in files, and through a gateway
// that has the embedded database open.

import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createApp, printToken } from '../../src/cli/apps-commands.ts';
import { type ReencryptOptions, reencryptSecrets } from '../../src/cli/secrets-command.ts';
import { createBotDirectory } from '../../src/store/apps/bot-directory.ts';
import { openStreamUrl, sealStreamUrl } from '../../src/store/apps/stream-addresses.ts';
import { createNodeStore } from '../../src/store/nodes.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { makeSeededDataDir, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/gateway-process.ts';
import { columnsWith } from '../support/sealed-values.ts';
import { printedBy, run } from './support.ts';

type Env = Readonly<Record<string, string>>;

const [oldKey, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const hex = (key: Buffer): string => key.toString('hex');
const done = 'Every stored secret is sealed with SECRETS_KEY. SECRETS_KEY_PREVIOUS can go.';
const acme = { name: 'crm', account: 'acme', bots: '*', jwtAlgorithm: 'HS256' } as const;

async function reencrypt(env: Env, options: ReencryptOptions = {}): Promise<string> {
  const { out, notes } = await printedBy(env, (context) => reencryptSecrets(context, options));
  return `${out}${notes}`;
}

async function tokenFor(env: Env, appId: string): Promise<string> {
  return (await printedBy(env, (context) => printToken(context, { app: appId, ttl: '60s' }))).out;
}

describe('on PostgreSQL', () => {
  /** A database with an app and a bot, whose secrets are sealed with the old key. */
  async function openPlace() {
    const database = await openTestDatabase('postgres');
    onTestFinished(() => database.remove());
    const { databaseUrl: DATABASE_URL = '', dataDir: DATA_DIR } = database.location;
    const where = { DATABASE_URL, DATA_DIR };
    const { out } = await printedBy({ ...where, SECRETS_KEY: hex(oldKey) }, (context) =>
      createApp(context, acme),
    );
    const secrets = createSecretBox(oldKey);
    const stream = {
      ...sealStreamUrl(secrets, 'shop', 'wss://bot.example/?key=s3cret'),
      connect: 'person' as const,
    };
    const bots = createBotDirectory({ database, clock: { now: () => new Date() } });
    await bots.add({ botId: 'shop', accountId: 'acme', stream });
    const env = { ...where, SECRETS_KEY: hex(newKey), SECRETS_KEY_PREVIOUS: hex(oldKey) };
    const { appId } = JSON.parse(out) as { appId: string };
    return { database, where, env, bots, appId };
  }

  test('continues after it was killed half-way, and loses nothing', async () => {
    const { database, where, bots, appId } = await openPlace();
    const { pool } = database;
    const paths = {
      ...{
        DATABASE_URL_FILE: join(where.DATA_DIR, 'url'),
        SECRETS_KEY_FILE: join(where.DATA_DIR, 'new'),
      },
      SECRETS_KEY_PREVIOUS_FILE: join(where.DATA_DIR, 'old'),
    };
    await writeFile(paths.DATABASE_URL_FILE, `${where.DATABASE_URL}\n`);
    await writeFile(paths.SECRETS_KEY_FILE, `${hex(newKey)}\n`);
    await writeFile(paths.SECRETS_KEY_PREVIOUS_FILE, `${hex(oldKey)}\n`);
    const fromFiles = { DATA_DIR: where.DATA_DIR, ...paths };
    const header = createSecretBox(newKey).headers.current;
    // The command goes through the apps first, and has to wait for the bots.
    const client = await pool.connect();
    await client.query('begin; lock table bots in access exclusive mode');

    const command = run('cli', ['secrets', 'reencrypt'], fromFiles);
    await eventually(
      async () => {
        const { rowCount } = await client.query(
          'select from webhook_secrets where substring(secret for 6) = $1',
          [header],
        );
        return rowCount === 1;
      },
      'the webhook secret is re-encrypted',
      30_000,
    );
    command.process.kill('SIGKILL');
    await command.finished;
    await client.query('rollback');
    client.release();

    const both = { ...where, SECRETS_KEY: hex(newKey), SECRETS_KEY_PREVIOUS: hex(oldKey) };
    expect(await tokenFor(both, appId)).toMatch(/^ey/);
    expect(await columnsWith(pool, header)).not.toContain('bots.stream_query');
    const again = await run('cli', ['secrets', 'reencrypt'], fromFiles).finished;
    expect(again).toEqual({
      code: 0,
      out: `bots.stream_query: 1 re-encrypted\n${done}\n`,
      err: '',
    });
    const stream = (await bots.find('shop'))?.stream ?? { url: '' };
    const box = createSecretBox(newKey);
    expect(openStreamUrl(box, 'shop', stream)).toBe('wss://bot.example/?key=s3cret');
    expect(await columnsWith(pool, createSecretBox(oldKey).headers.current)).toEqual([]);
  }, 90_000);

  test('a gateway does not start without the key of an app’s secrets', async () => {
    const { where } = await openPlace();
    const ports = { HTTP_PORT: '0', SIP_PORT: '0', LOG_LEVEL: 'silent' };

    const { code, err } = await run('main', [], { ...where, ...ports, SECRETS_KEY: hex(newKey) })
      .finished;

    expect(code).toBe(1);
    expect(err).toMatch(
      /^offhook: SECRETS_KEY does not open stored secrets: 1 in apps.jwt_secret \(key [0-9a-f]{10}\), 1 in apps.stream_secret .*Set the key that does as SECRETS_KEY_PREVIOUS\.\n$/,
    );
  }, 60_000);

  test('a dry run counts and changes nothing', async () => {
    const { database, env } = await openPlace();
    const before = await columnsWith(database.pool, createSecretBox(oldKey).headers.current);

    await expect(reencrypt(env, { dryRun: true })).rejects.toThrow(
      '4 secrets are not sealed with SECRETS_KEY; --dry-run changed nothing.',
    );
    expect(before).toEqual(
      await columnsWith(database.pool, createSecretBox(oldKey).headers.current),
    );
    await reencrypt(env);
    expect(await reencrypt(env, { dryRun: true })).toBe(done);
  });

  test('waits for gateways that do not have the new key', async () => {
    const { database, env } = await openPlace();
    const node = createNodeStore(database, 'gateway-2/1', 60_000);
    await node.register({ nodeId: 'gateway-2', version: '1', questionKey: 'key' });

    await expect(reencrypt(env)).rejects.toThrow(
      'These gateways don’t have SECRETS_KEY yet: gateway-2. Restart them with it first',
    );
    expect(await reencrypt(env, { force: true })).toContain(done);
  });

  test('does not say that the previous key can go while values with it keep coming', async () => {
    const { database, env } = await openPlace();
    // Does what a gateway that seals with the previous key may do.
    await database.pool.query(
      `create function put_back() returns trigger language plpgsql as
         'begin new.stream_query := old.stream_query; return new; end';
       create trigger put_back before update on bots for each row execute function put_back()`,
    );

    await expect(reencrypt(env)).rejects.toThrow(
      'A gateway still seals with another key. Keep SECRETS_KEY_PREVIOUS',
    );
  });

  test('names the key of secrets that it cannot open, and asks to keep the previous key', async () => {
    const { where } = await openPlace();
    const third = { ...where, SECRETS_KEY: 'ab'.repeat(32), SECRETS_KEY_PREVIOUS: hex(newKey) };

    await expect(reencrypt(third)).rejects.toThrow(
      '4 secrets are not sealed with SECRETS_KEY. Keep SECRETS_KEY_PREVIOUS, and run this again.',
    );
  });
});

test('with an embedded database, the generated key can be replaced', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const env = { DATA_DIR: dataDir.path };
  const { out } = await printedBy(env, (context) => createApp(context, acme));
  const { appId } = JSON.parse(out) as { appId: string };
  const oldFile = join(dataDir.path, 'old.key');
  await rename(join(dataDir.path, 'secrets.key'), oldFile);

  const gateway = await startGateway(dataDir.path, { SECRETS_KEY_PREVIOUS_FILE: oldFile });
  expect(await reencrypt(env)).toContain(done);
  await gateway.terminate();

  expect(await tokenFor(env, appId)).toMatch(/^ey/);
}, 120_000);
