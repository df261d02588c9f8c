// A pooler between the gateway and PostgreSQL. Sessions that it shares between clients would lose
// prepared statements and time-outs.

import { expect, onTestFinished, test } from 'vitest';
import { databaseCheck } from '../../src/checks/database.ts';
import { loadConfig } from '../../src/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { makeTestDatabase } from '../support/databases.ts';
import { type PoolMode, startPgBouncer } from '../support/pgbouncer.ts';

async function urlThrough(mode: PoolMode, settings?: readonly string[]): Promise<string> {
  const { databaseUrl = '' } = await makeTestDatabase('postgres');
  const pgbouncer = await startPgBouncer(databaseUrl, mode, settings);
  onTestFinished(() => pgbouncer[Symbol.asyncDispose]());
  return pgbouncer.url;
}

const open = (databaseUrl: string) =>
  openDatabase({ databaseUrl, dataDir: '/nonexistent', logger: silentLogger });

const examined = (databaseUrl: string) =>
  databaseCheck(loadConfig({ DATABASE_URL: databaseUrl, SECRETS_KEY: 'ab'.repeat(32) })).run();

const refusal = /^DATABASE_URL: .*PgBouncer .*pool_mode = transaction.*pool_mode = session/;

test.each([
  ['transaction', []],
  ['transaction', ['server_round_robin = 1', 'min_pool_size = 5']],
  ['statement', []],
] as const)('PgBouncer in %s mode is refused (%j)', async (mode, settings) => {
  const url = await urlThrough(mode, settings);

  await expect(open(url)).rejects.toThrow(refusal);
  expect(await examined(url)).toMatchObject({
    state: 'failed',
    detail: expect.stringMatching(refusal) as string,
  });
});

test('PgBouncer in session mode works, and the time-outs reach the server', async () => {
  const url = await urlThrough('session');
  const database = await open(url);
  onTestFinished(() => database.close());

  const { rows } = await database.pool.query(
    `select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock`,
  );
  expect(rows).toEqual([{ statement: '15s', lock: '10s' }]);
  const read = await database
    .reads('account')
    .query<{ statement: string }>(`select current_setting('statement_timeout') as statement`);
  expect(read.rows).toEqual([{ statement: '5s' }]);
  expect(await examined(url)).toMatchObject({ state: 'ok' });
});
