// The backup program of docker-compose.yml, without containers: it archives a real server, which is
// then restored to a moment.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type KeptProgram, keepProgram } from '../support/kept-program.ts';
import { forSuite } from '../support/opened.ts';
import { findPostgres, postgresUser, startPostgres } from '../support/postgres-server.ts';
import { repository } from './compose.ts';

const program = join(repository, '.docker/postgres-backup.sh');
/**
 * A base backup waits for a checkpoint, and the program looks at its parts only every 5 s. On a
 * busy machine, both take several times as long.
 */
const backupTimeoutMs = 90_000;

const server = forSuite(startPostgres);
let folder: string;
let backup: KeptProgram;
let client: Client;

beforeAll(async () => {
  folder = await makeFolder();
  await eventually(isConnected, 'the server answers');
  await client.query('create table written (at text)');
  backup = await startBackup();
});

afterAll(async () => {
  await backup.end();
  await client.end();
  await rm(folder, { recursive: true, force: true });
});

async function makeFolder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'offhook-test-backup-'));
  await giveToPostgres(path);
  await mkdir(join(path, 'archive'));
  await giveToPostgres(join(path, 'archive'));
  return path;
}

async function giveToPostgres(path: string): Promise<void> {
  const user = await postgresUser();
  if (user !== undefined) await chown(path, user.uid, user.gid);
}

async function isConnected(): Promise<boolean> {
  client = new Client({ connectionString: server.url });
  return await client.connect().then(
    () => true,
    () => false,
  );
}

async function variables(): Promise<Record<string, string>> {
  const host = new URL(server.url.replace('@/', '@localhost/')).searchParams.get('host') ?? '';
  return {
    ...{ PATH: `${await findPostgres()}:${process.env['PATH'] ?? ''}`, PGHOST: host },
    ...{ PGUSER: 'postgres', PGDATABASE: 'postgres', ARCHIVE: join(folder, 'archive') },
  };
}

async function startBackup(): Promise<KeptProgram> {
  const environment = Object.entries(await variables()).map(([name, value]) => `${name}=${value}`);
  return await keepProgram({
    program: 'env',
    args: [...environment, 'sh', program, 'run'],
    ...{ logFile: join(folder, 'backup.log'), cwd: folder, user: await postgresUser() },
  });
}

/** Runs a command of the program, and returns its standard output. */
async function run(args: readonly string[], more: Record<string, string> = {}): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', [program, ...args], {
    ...{ cwd: folder, env: { ...(await variables()), ...more } },
    ...(await postgresUser()),
  });
  return stdout;
}

const bases = async (): Promise<readonly string[]> =>
  (await run(['list'])).split('\n').filter((line) => line !== '');

const log = (): string => readFileSync(join(folder, 'backup.log'), 'utf8');

const write = (text: string) => client.query('insert into written values ($1)', [text]);

/** Returns a whole second after everything that was written, as soon as it has passed. */
async function moment(): Promise<string> {
  const at = new Date(Math.ceil((Date.now() + 1) / 1_000) * 1_000);
  await eventually(() => Date.now() > at.getTime(), 'the second has passed');
  return at.toISOString().replace('.000Z', 'Z');
}

/** Restores into a new data folder, and returns what its server has. */
async function restored(to: string): Promise<readonly string[]> {
  const data = await mkdtemp(join(folder, 'restored-'));
  await giveToPostgres(data);
  await run(['restore', to], { PGDATA: data });
  const programs = await findPostgres();
  const socket = await mkdtemp(join(tmpdir(), 'offhook-test-restored-'));
  await giveToPostgres(socket);
  const started = await keepProgram({
    program: join(programs, 'postgres'),
    args: ['-D', data, '-k', socket, '-c', 'listen_addresses='],
    ...{ logFile: join(folder, 'restored.log'), cwd: folder, user: await postgresUser() },
  });
  onTestFinished(async () => {
    await started.end('INT');
    await rm(socket, { recursive: true, force: true });
  });
  let rows: readonly { readonly at: string }[] = [];
  await eventually(async () => {
    const reader = new Client({ host: socket, user: 'postgres', database: 'postgres' });
    try {
      await reader.connect();
      rows = (await reader.query<{ at: string }>('select at from written order by at')).rows;
      return true;
    } catch {
      return false;
    } finally {
      await reader.end();
    }
  }, 'the restored server answers');
  return rows.map(({ at }) => at);
}

test('restores the database to a moment, or to the end of the archive', async () => {
  await eventually(async () => (await bases()).length === 1, 'there is a base', backupTimeoutMs);
  await write('1: before the moment');
  const between = await moment();
  await write('2: after the moment');
  // The same program again goes on where it was.
  await backup.end();
  await write('3: while no backup ran');
  backup = await startBackup();
  await write('4: after its restart');
  const [{ lsn } = { lsn: '' }] = (
    await client.query<{ lsn: string }>('select pg_current_wal_flush_lsn() as lsn')
  ).rows;
  let slots: readonly { readonly has_all: boolean; readonly active: boolean }[] = [];
  await eventually(
    async () => {
      const found = await client.query<(typeof slots)[number]>(
        'select restart_lsn >= $1 as has_all, * from pg_replication_slots',
        [lsn],
      );
      slots = found.rows;
      return slots.some(({ has_all: hasAll, active }) => hasAll && active);
    },
    () => `all WAL until ${lsn} is archived: ${JSON.stringify(slots)}\n${log()}`,
    backupTimeoutMs,
  );

  expect(await restored(between)).toEqual(['1: before the moment']);
  expect(await restored('latest')).toEqual([
    ...['1: before the moment', '2: after the moment'],
    ...['3: while no backup ran', '4: after its restart'],
  ]);
  expect(await readdir(join(folder, 'archive'))).toHaveLength(1);
});

test('begins a new chain if the server has dropped WAL that was not copied', async () => {
  const basesBefore = await bases();
  await backup.end();
  await client.query(`alter system set max_slot_wal_keep_size = '1MB'`);
  await client.query('select pg_reload_conf()');
  const isLost = async (): Promise<boolean> => {
    await write('not copied');
    await client.query('select pg_switch_wal()');
    await client.query('checkpoint');
    const { rows } = await client.query(
      `select from pg_replication_slots where wal_status = 'lost'`,
    );
    return rows.length === 1;
  };
  await eventually(isLost, 'the server has dropped WAL', backupTimeoutMs);

  backup = await startBackup();

  const hasNewBase = async () => (await bases()).length > basesBefore.length;
  await eventually(hasNewBase, 'there is a base in the new chain', backupTimeoutMs);
  expect(await readdir(join(folder, 'archive'))).toHaveLength(2);
  expect(await restored('latest')).toContain('not copied');
});

test('refuses a moment that it cannot restore, and leaves the data alone', async () => {
  const data = join(folder, 'kept');
  await mkdir(join(data, 'base'), { recursive: true });
  for (const path of [data, join(data, 'base')]) await giveToPostgres(path);
  const refusal = async (to: string): Promise<string> =>
    await run(['restore', to], { PGDATA: data }).then(
      () => 'restored',
      (error: unknown) => (error as { stderr: string }).stderr,
    );

  expect(await refusal('yesterday')).toContain('must be UTC, e.g. 2026-03-01T10:00:00Z');
  expect(await refusal('2026-03-01T10:00:00Z')).toContain('no base backup was complete at');
  expect(await readdir(data)).toEqual(['base']);
});
