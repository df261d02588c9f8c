import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { logSerializers, silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { startPglite } from '../../src/store/pglite/pglite-server.ts';
import { analyzeGrown } from '../../src/store/pglite/pglite-statistics.ts';
import { inTransaction } from '../../src/store/transaction.ts';
import {
  databaseKinds,
  makeTestDatabase,
  openTestDatabase,
  type TestDatabase,
} from '../support/databases.ts';
import { insertRows } from '../support/tables.ts';

describe.each(databaseKinds)('the database on %s', (kind) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase(kind, { own: true });
  });

  afterAll(() => database.remove());

  test('keeps simultaneous transactions apart', async () => {
    const { pool } = database;
    const row = { appId: 'a', botId: 'b', key: 'k', requestHash: '0', callId: 'c', answer: {} };
    await insertRows(pool, 'idempotency_keys', [{ ...row, expiresAt: new Date() }]);

    await Promise.all(
      Array.from({ length: 30 }, () =>
        inTransaction(pool, async (client) => {
          const { rows } = await client.query<{ request_hash: string }>(
            "select request_hash from idempotency_keys where key = 'k' for update",
          );
          await client.query('update idempotency_keys set request_hash = $1', [
            String(Number(rows[0]?.request_hash) + 1),
          ]);
        }),
      ),
    );

    const { rows } = await pool.query('select request_hash from idempotency_keys');
    expect(rows).toEqual([{ request_hash: '30' }]);
  });

  test('logs what failed and where, but no stored data', async () => {
    const { pool } = database;
    const lines: string[] = [];
    const logger = pino({ serializers: logSerializers }, { write: (line) => lines.push(line) });
    const value = 'jane.doe@example.com';
    const row = { appId: value, botId: 'b', key: 'k', requestHash: '0', callId: 'c', answer: {} };
    const insertTwice = () =>
      insertRows(pool, 'idempotency_keys', [
        { ...row, expiresAt: new Date() },
        { ...row, expiresAt: new Date() },
      ]);

    for (const failing of [
      insertTwice,
      () =>
        pool.query('select * from json_to_recordset($1::json) as r(a int)', [`[{"a": ${value}`]),
    ]) {
      await failing().catch((cause: unknown) => {
        logger.error({ err: cause }, 'plain');
        logger.error({ err: new Error('not stored', { cause }) }, 'wrapped');
      });
    }

    expect(lines).toHaveLength(4);
    for (const line of lines.slice(0, 2)) {
      expect(line).toContain('duplicate key value');
      expect(line).toContain('insertRows');
    }
    expect(lines.join()).not.toContain('jane');
  });

  test('continues to work after errors inside and outside of transactions', async () => {
    const { pool } = database;
    const failing = (): Promise<unknown> =>
      inTransaction(pool, async (client) => {
        await client.query('create table half_done (id text)');
        await client.query('select 1 / 0');
      });

    const work = (index: number): Promise<unknown> => {
      if (index % 3 === 0) return pool.query('select 1 / 0');
      return index % 3 === 1 ? failing() : pool.query('select $1::text', [index]);
    };

    const results = await Promise.allSettled(Array.from({ length: 60 }, (_, index) => work(index)));

    expect(results.map((result) => result.status)).toEqual(
      Array.from({ length: 60 }, (_, index) => (index % 3 === 2 ? 'fulfilled' : 'rejected')),
    );
    const { rows } = await pool.query("select to_regclass('half_done') as found");
    expect(rows).toEqual([{ found: null }]);
  });

  test('reads back what was written, to the byte and the millisecond', async () => {
    const at = new Date('2026-03-01T10:00:00.789Z');
    const text = 'ünïcode \u{1f600} "quoted" \\ \n';

    const { rows } = await database.pool.query(
      'select $1::timestamptz(3) as at, $2::text as text, $3::jsonb as json, $4::bytea as bytes',
      [at, text, JSON.stringify({ text }), Buffer.from([0, 255, 10])],
    );

    expect(rows).toEqual([{ at, text, json: { text }, bytes: Buffer.from([0, 255, 10]) }]);
  });

  test('still has every accepted call after the process was killed', async () => {
    const location = await makeTestDatabase(kind);
    const { dataDir, databaseUrl } = location;

    const promised = await acceptUntilKilled([
      dataDir,
      ...(databaseUrl === undefined ? [] : [databaseUrl]),
    ]);

    const reopened = await openDatabase({ ...location, logger: silentLogger });
    try {
      const { rows } = await reopened.pool.query<{ call_id: string }>('select call_id from calls');
      const stored = new Set(rows.map((row) => row.call_id));
      expect(promised.length).toBeGreaterThan(100);
      expect(promised.filter((callId) => !stored.has(callId))).toEqual([]);
    } finally {
      await reopened.close();
    }
  });
});

async function acceptUntilKilled(parameters: readonly string[]): Promise<readonly string[]> {
  const program = new URL('./accepting-process.ts', import.meta.url).pathname;
  const child: ChildProcess = spawn(
    process.execPath,
    ['--import', import.meta.resolve('tsx'), program, ...parameters],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const promised: string[] = [];
  if (child.stdout === null) throw new Error('no pipe');
  for await (const line of createInterface({ input: child.stdout })) {
    promised.push(line);
    if (promised.length === 500) child.kill('SIGKILL');
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  return promised;
}

describe('the embedded database', () => {
  test('lives in a folder whose path is too long for a socket', async () => {
    const original = await makeTestDatabase('pglite');
    const dataDir = join(original.dataDir, 'd'.repeat(120));
    await mkdir(dataDir);
    await rename(join(original.dataDir, 'pglite'), join(dataDir, 'pglite'));

    const database = await openDatabase({ dataDir, logger: silentLogger });
    const folder = database.pool.options.host ?? '';
    const { rows } = await database.pool.query('select 1 as one');
    const { mode } = await stat(folder);
    await database.close();

    expect(folder.startsWith(dataDir)).toBe(false);
    expect(rows).toEqual([{ one: 1 }]);
    expect(mode & 0o777).toBe(0o700);
    await expect(stat(folder)).rejects.toThrow('ENOENT');
  });

  test('is created completely or not at all, for its user only, with buffers that fit a laptop', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'offhook-test-first-'));
    try {
      // The leftover of a process that was killed while it created a database.
      await mkdir(join(dataDir, 'pglite-unfinished-Xk2b1Q', 'base'), { recursive: true });
      await mkdir(join(dataDir, 'pglite'));
      const database = await openDatabase({ dataDir, logger: silentLogger });
      const { rows } = await database.pool.query('show shared_buffers');
      await database.close();

      expect(rows).toEqual([{ shared_buffers: '8MB' }]);
      expect((await readdir(dataDir)).filter((name) => name.includes('unfinished'))).toEqual([]);
      expect((await stat(join(dataDir, 'pglite'))).mode & 0o777).toBe(0o700);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  test('refuses a folder that holds something else', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'offhook-test-strange-'));
    const letter = join(dataDir, 'pglite', 'letter.txt');
    try {
      await mkdir(join(dataDir, 'pglite'));
      await writeFile(letter, 'keep me');
      await expect(openDatabase({ dataDir, logger: silentLogger })).rejects.toThrow(
        `the embedded database under ${join(dataDir, 'pglite')} did not start`,
      );
      expect(await readFile(letter, 'utf8')).toBe('keep me');
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  test('reports that its worker died', async () => {
    const { dataDir } = await makeTestDatabase('pglite');
    let reportDeath = (_error: Error): void => undefined;
    const fatal = new Promise<Error>((resolve) => {
      reportDeath = resolve;
    });

    const server = await startPglite(dataDir, reportDeath);
    await server.worker.terminate();

    expect((await fatal).message).toContain('worker ended');
    await server.close();
  });

  test('names the folder if it does not start', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'offhook-test-broken-'));
    await mkdir(join(dataDir, 'pglite', 'PG_VERSION'), { recursive: true });
    try {
      await expect(openDatabase({ dataDir, logger: silentLogger })).rejects.toThrow(
        `the embedded database under ${join(dataDir, 'pglite')} did not start`,
      );
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});

test('refuses a wrong DATABASE_URL immediately, without logging its password', async () => {
  await using database = await openTestDatabase('postgres');
  const databaseUrl = (database.location.databaseUrl ?? '')
    .replace(/\/test_\w+/, '/no_such_database')
    .replace('postgres@', 'postgres:sesame@');

  const opening = openDatabase({ databaseUrl, dataDir: '/nonexistent', logger: silentLogger });

  await expect(opening).rejects.toThrow('DATABASE_URL cannot be reached');
  await expect(opening).rejects.not.toThrow('sesame');
});

test('the embedded database keeps plans until a table has doubled', async () => {
  await using database = await openTestDatabase('pglite', { own: true });
  const { pool } = database;
  const look = (id: string) =>
    pool.query({ name: 'look', text: 'select body from grown where id = $1', values: [id] });
  const planOfLook = async (): Promise<string> => {
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>("explain execute look('1')");
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  await pool.query('create table grown (id text primary key, body text)');
  await pool.query("insert into grown values ('1', 'x')");
  await pool.query('analyze grown');
  // PostgreSQL plans the first five executions individually.
  for (let count = 0; count < 10; count += 1) await look('1');

  const kept =
    "select generic_plans::integer as kept from pg_prepared_statements where name = 'look'";
  expect((await pool.query(kept)).rows).toEqual([{ kept: 5 }]);
  expect(await planOfLook()).toContain('Seq Scan on grown');

  await pool.query(
    "insert into grown select i::text, repeat('x', 500) from generate_series(2, 2000) i",
  );
  expect(await analyzeGrown(pool)).toContain('grown');
  expect(await planOfLook()).toContain('Index Scan using grown_pkey');
  expect(await analyzeGrown(pool)).toEqual([]);
});
