// Tests `offhook tables` on PostgreSQL, and on PGlite through the gateway that has it open.

import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createAdminServer } from '../../src/api/admin/admin-server.ts';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { createTable, listTables } from '../../src/cli/tables-commands.ts';
import { loadConfig } from '../../src/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createAppStore } from '../../src/store/apps/apps.ts';
import { createBotDirectory } from '../../src/store/apps/bot-directory.ts';
import { createPublishedCalls } from '../../src/store/calls/published-calls.ts';
import { createDataTables } from '../../src/store/data-tables.ts';
import { createNodeDirectory } from '../../src/store/nodes.ts';
import { createRecordingKeys } from '../../src/store/recordings/recording-keys.ts';
import { createReencryption } from '../../src/store/reencryption.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';

const visits = {
  name: 'visits',
  columns: [{ name: 'name', type: 'string', required: true }],
  writers: ['*'],
};

describe.each(databaseKinds)('offhook tables on %s', (kind) => {
  let admin: ReturnType<typeof createAdminServer>;
  let context: CliContext;
  const lines: string[] = [];
  const database = forSuite(() => openTestDatabase(kind));
  beforeAll(async () => {
    const clock = { now: () => new Date() };
    const secrets = createSecretBox(randomBytes(32));
    const stores = {
      apps: createAppStore({ database, secrets, clock, tokenMaxTtlS: 86_400 }),
      bots: createBotDirectory({ database, clock }),
      tables: createDataTables({ database, clock }),
      nodes: createNodeDirectory(database.pool),
      publishedCalls: createPublishedCalls(database.pool),
      recordingKeys: createRecordingKeys(database.pool, () => new Date()),
      secrets,
      reencryption: createReencryption(database.pool, secrets),
    };
    admin = createAdminServer({ stores, key: 'key', logger: silentLogger });
    const url = await admin.listen({ host: '127.0.0.1', port: 0 });
    context = contextOf(database, lines, url.replace('//', '//:key@'));
  });
  afterEach(async () => {
    lines.length = 0;
    await database.clear();
  });
  afterAll(() => admin.close());

  async function fileWith(content: unknown): Promise<string> {
    const path = join(database.location.dataDir, 'table.json');
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    await writeFile(path, text);
    return path;
  }

  test('creates tables from files, and lists them by account', async () => {
    const wide = { ...visits, name: 'wide', writers: [] };
    await createTable(context, await fileWith(visits), { account: 'b' });
    await createTable(context, await fileWith(wide), { account: 'a' });
    await createTable(context, await fileWith(visits), { account: 'a' });

    lines.length = 0;
    await listTables(context);

    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { accountId: 'a', ...visits },
      { accountId: 'a', ...wide },
      { accountId: 'b', ...visits },
    ]);
  });

  test('changes an existing table only with --replace', async () => {
    const other = { ...visits, writers: ['app-1'] };
    await createTable(context, await fileWith(visits), { account: 'a' });

    await expect(createTable(context, await fileWith(other), { account: 'a' })).rejects.toThrow(
      'name: is already a table',
    );
    lines.length = 0;
    await listTables(context);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject(visits);

    await createTable(context, await fileWith(other), { account: 'a', replace: true });
    lines.length = 0;
    await listTables(context);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { accountId: 'a', ...other },
    ]);
  });

  test('reports the errors of a file by member', async () => {
    const create = async (content: unknown) =>
      await createTable(context, await fileWith(content), { account: 'a' });
    const wrong = { columns: [{ name: 'sys_Id', type: 'text' }], writers: ['a b'], owner: 'x' };

    await expect(create(wrong)).rejects.toThrow(
      /name: is required.*columns\.0\.name: .*columns\.0\.type: must be one of string, .*writers\.0: must be.*owner/s,
    );
    await expect(create('{"name":')).rejects.toThrow('table.json is not JSON');
    await expect(create([])).rejects.toThrow('name: is required');
    await expect(create(visits)).resolves.toBeUndefined();
    await expect(createTable(context, 'nowhere.json', { account: 'a' })).rejects.toThrow(
      'nowhere.json cannot be read',
    );
    await expect(createTable(context, await fileWith(visits), { account: 'a/b' })).rejects.toThrow(
      'accountId: must be',
    );
  });

  test('requires --account if there is no dev account', async () => {
    const created = createTable(context, await fileWith(visits), {});

    if (kind === 'postgres') await expect(created).rejects.toThrow('--account');
    else await created;
    lines.length = 0;
    await listTables(context);
    expect(lines).toHaveLength(kind === 'postgres' ? 0 : 1);
    if (kind === 'pglite') expect(JSON.parse(lines[0] ?? '')).toHaveProperty('accountId', 'dev');
  });
});

function contextOf({ location }: TestDatabase, lines: string[], adminUrl: string): CliContext {
  const { databaseUrl, dataDir } = location;
  return {
    config: loadConfig({
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      SECRETS_KEY: randomBytes(32).toString('hex'),
    }),
    gateway: () => Promise.resolve({ httpUrl: 'http://127.0.0.1:1', adminUrl }),
    print: (line) => void lines.push(line),
    note: () => undefined,
    interrupted: new AbortController().signal,
  };
}
