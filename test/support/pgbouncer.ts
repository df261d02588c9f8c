// Starts PgBouncer in front of a PostgreSQL server that listens on a unix socket.

import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { keepProgram } from './kept-program.ts';
import { postgresUser } from './postgres-server.ts';

export type PoolMode = 'session' | 'transaction' | 'statement';

export type PgBouncer = AsyncDisposable & {
  /** The URL of the same database through PgBouncer. */
  readonly url: string;
};

export async function startPgBouncer(
  databaseUrl: string,
  mode: PoolMode,
  settings: readonly string[] = [],
): Promise<PgBouncer> {
  const [, database = '', socketFolder = ''] = /\/(\w+)\?host=(.*)$/.exec(databaseUrl) ?? [];
  const user = await postgresUser();
  const folder = await mkdtemp(join(tmpdir(), 'offhook-test-pgbouncer-'));
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  const port = await freeUdpPort();
  const users = join(folder, 'users');
  await writeFile(users, '"postgres" ""\n');
  const config = [
    '[databases]',
    `* = host=${decodeURIComponent(socketFolder)}`,
    '[pgbouncer]',
    ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir ='],
    ...['auth_type = trust', `auth_file = ${users}`, `pool_mode = ${mode}`, ...settings],
  ];
  const configFile = join(folder, 'pgbouncer.ini');
  await writeFile(configFile, `${config.join('\n')}\n`);
  const pgbouncer = await keepProgram({
    program: 'pgbouncer',
    args: [configFile],
    ...{ logFile: join(folder, 'log'), cwd: folder, user },
  });
  await eventually(() => listens(port), 'PgBouncer listens');
  return {
    url: `postgres://postgres@127.0.0.1:${port}/${database}`,
    [Symbol.asyncDispose]: async () => {
      await pgbouncer.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
