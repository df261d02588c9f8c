// A gateway that starts on data of another version exits immediately, and says in one sentence what
// to do.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { databaseCheck } from '../../src/checks/database.ts';
import { loadConfig } from '../../src/config.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';

const secretsKey = randomBytes(32).toString('hex');

/** The list of migrations as version 0.2 kept it. */
const asEarlierVersion = `
  drop table schema_migrations;
  create table schema_migrations (
    version integer primary key, name text not null, applied_at timestamptz(3) not null);
  insert into schema_migrations values (1, 'calls-and-notifications', now())`;
const asNewerVersion = `update schema_migrations set version = '1.12' where name = 'tables'`;

const cases = databaseKinds.flatMap((kind) => [
  [kind, 'an earlier version', asEarlierVersion] as const,
  [kind, 'a newer version', asNewerVersion] as const,
]);

test.each(cases)('on %s with data of %s', async (kind, _version, statement) => {
  const database = await openTestDatabase(kind, { own: true });
  onTestFinished(() => database.remove());
  const { databaseUrl, dataDir } = database.location;
  await database.pool.query(statement);
  await database.close();
  const variables =
    databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl, SECRETS_KEY: secretsKey };

  const { code, printed } = await start({ DATA_DIR: dataDir, ...variables });

  const name =
    databaseUrl === undefined ? `the data folder ${dataDir}` : 'the database at DATABASE_URL';
  const remedy =
    databaseUrl === undefined
      ? 'move the whole folder away, and the next start makes a new one'
      : 'name an empty database there';
  const sentence =
    statement === asNewerVersion
      ? `${name} was made by Offhook 1.12, and this is 0.9: start Offhook 1.12 or later`
      : `${name} was made by Offhook 0.2 or earlier, and 0.9 cannot read its data: ${remedy}`;
  expect(code).toBe(1);
  expect(printed).toBe(`offhook: ${sentence}\n`);
  if (databaseUrl !== undefined) {
    const check = databaseCheck(loadConfig({ DATA_DIR: dataDir, ...variables }));
    expect(await check.run()).toEqual({
      state: 'failed',
      detail: sentence,
    });
  }
});

async function start(variables: Readonly<Record<string, string>>) {
  const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env['PATH'], HTTP_PORT: '0', SIP_PORT: '0', ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [printed, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, printed };
}
