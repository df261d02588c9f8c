// Opens an empty database with the schema for a test or a test file, on PostgreSQL or PGlite:
// `describe.each(databaseKinds)('… on %s', (kind) => …)`. A file with many tests opens one in
// `beforeAll` and calls `clear()` after each test. Opening PGlite takes two seconds of a core, so
// the files of one worker take turns with one open database.

import { randomUUID } from 'node:crypto';
import { access, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { inject } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { copyDatabaseFolder } from './copy-database-folder.ts';
import { eventually } from './eventually.ts';
import { makeDataDir } from './gateway-process.ts';
import { empty, tableNamesIn } from './tables.ts';

export const databaseKinds = ['postgres', 'pglite'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

type Location = { readonly databaseUrl?: string; readonly dataDir: string };

export type TestDatabase = Database & {
  /** The options of `openDatabase` that open the same database again. */
  readonly location: Location;
  /** Empties all tables. */
  clear(): Promise<void>;
  /** Closes and removes the database. Idempotent. */
  remove(): Promise<void>;
};

export type TestDatabaseOptions = {
  /**
   * Set this if the test changes more than rows, i.e. tables, plans or statistics. It then gets a
   * database that no other test uses before or after it. Default: false.
   */
  readonly own?: boolean;
};

/** Opens a database for a test. Call `remove()` in an `afterEach`, or use `await using`. */
export async function openTestDatabase(
  kind: DatabaseKind,
  { own = false }: TestDatabaseOptions = {},
): Promise<TestDatabase & AsyncDisposable> {
  if (kind === 'postgres' || own) return await openOwn(kind);
  const database = idle.pop() ?? (await openOwn('pglite'));
  let isClosed = false;
  const close = async (): Promise<void> => {
    isClosed = true;
    await database.close();
  };
  let removing: Promise<void> | undefined;
  const remove = (): Promise<void> => {
    removing ??= isClosed ? database.remove() : giveBack(database);
    return removing;
  };
  return { ...database, close, remove, [Symbol.asyncDispose]: remove };
}

/** Creates a database without opening it. It is removed at the end of the run. */
export async function makeTestDatabase(kind: DatabaseKind): Promise<Location> {
  const dataDir = await mkdtemp(join(inject('sharedFolder'), 'data-'));
  return kind === 'postgres' ? await clonePostgres(dataDir) : await seeded(dataDir);
}

async function openOwn(kind: DatabaseKind): Promise<TestDatabase & AsyncDisposable> {
  const location = await makeTestDatabase(kind);
  const { dataDir } = location;
  const database = await openDatabase({ ...location, logger: silentLogger });
  const tables = await tableNamesIn(database.pool);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= database.close();
    return closing;
  };
  const clear = (): Promise<void> => empty(database.pool, tables);
  const remove = async (): Promise<void> => {
    await close();
    if (location.databaseUrl !== undefined) await dropPostgres(location.databaseUrl);
    await rm(dataDir, { recursive: true, force: true });
  };
  return { ...database, location, clear, close, remove, [Symbol.asyncDispose]: remove };
}

/**
 * Open, empty databases that wait for the next test. They end with the process of the worker, and
 * their folders are removed at the end of the run.
 */
const idle: (TestDatabase & AsyncDisposable)[] = [];

async function giveBack(database: TestDatabase & AsyncDisposable): Promise<void> {
  await database.clear();
  // Remove anything that the test left next to the database, e.g. a key or a dev app.
  for (const name of await readdir(database.location.dataDir)) {
    if (!name.startsWith('pglite'))
      await rm(join(database.location.dataDir, name), { recursive: true, force: true });
  }
  idle.push(database);
}

// ── PostgreSQL: a template database with the schema, cloned in about 30 ms ──

const templateName = 'offhook_template';

async function clonePostgres(dataDir: string): Promise<Location> {
  await once('postgres-template', async () => {
    await asSuperuser(`create database ${templateName}`);
    const template = await openDatabase({
      databaseUrl: urlOf(templateName),
      dataDir,
      logger: silentLogger,
    });
    await template.close();
  });
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await asSuperuser(`create database ${name} template ${templateName}`);
  return { databaseUrl: urlOf(name), dataDir };
}

async function dropPostgres(databaseUrl: string): Promise<void> {
  const name = /\/(test_\w+)\?/.exec(databaseUrl)?.[1];
  if (name !== undefined) await asSuperuser(`drop database if exists ${name} with (force)`);
}

function urlOf(name: string): string {
  return inject('postgresUrl').replace('/postgres?', `/${name}?`);
}

async function asSuperuser(statement: string): Promise<void> {
  const client = new Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

// ── PGlite: a data folder with the schema, copied, because creating one takes seconds ──

/**
 * Puts an embedded database into `dataDir`. To a gateway it looks as if it had started there
 * before.
 */
export async function seedPglite(dataDir: string): Promise<void> {
  const template = join(inject('sharedFolder'), 'pglite-template');
  await once('pglite-template', async () => {
    const database = await openDatabase({ dataDir: template, logger: silentLogger });
    // Two of the three databases are only templates for new databases. Without them the copy is
    // half as large.
    await database.pool.query('update pg_database set datistemplate = false');
    for (const name of ['template0', 'template1'])
      await database.pool.query(`drop database ${name}`);
    await database.close();
  });
  await mkdir(dataDir, { recursive: true });
  await copyDatabaseFolder(join(template, 'pglite'), join(dataDir, 'pglite'));
}

/**
 * Makes a data folder that already holds an embedded database. A first start would take 5 s of a
 * core to create it.
 */
export async function makeSeededDataDir(): ReturnType<typeof makeDataDir> {
  const dataDir = await makeDataDir();
  await seedPglite(dataDir.path);
  return dataDir;
}

async function seeded(dataDir: string): Promise<Location> {
  await seedPglite(dataDir);
  return { dataDir };
}

// ── Work that is done once for the whole run, although test files run in several processes ──

/** Creating a PGlite data folder takes 5 s of a core, which several processes share. */
const onceTimeoutMs = 50_000;

async function once(name: string, work: () => Promise<void>): Promise<void> {
  const folder = inject('sharedFolder');
  const done = join(folder, `${name}.done`);
  const begun = await mkdir(join(folder, `${name}.begun`)).then(
    () => true,
    () => false,
  );
  if (begun) {
    try {
      await work();
    } catch (error) {
      // Let the next test file try again and fail with the same reason.
      await rm(join(folder, `${name}.begun`), { recursive: true });
      throw error;
    }
    await mkdir(done);
    return;
  }
  await eventually(() => exists(done), `another process has made ${name}`, onceTimeoutMs);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
