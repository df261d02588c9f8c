// Starts PostgreSQL for the test run, with a new cluster in a temporary folder that can only be
// reached through a unix socket. The server stops with the run, no matter how the run ends.

import { execFile, spawn } from 'node:child_process';
import { chown, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './eventually.ts';

const run = promisify(execFile);
/** PostgreSQL starts once for each run, on a machine that may be busy. */
const startTimeoutMs = 20_000;

export type PostgresServer = {
  readonly url: string;
  /** Id of the process that starts and stops the server. */
  readonly pid: number;
  stop(): Promise<void>;
};

export type PostgresOptions = {
  readonly fsync?: boolean;
  /** Keeps the server in recovery, so that it is read-only like a standby. Default: false. */
  readonly standby?: boolean;
  /** Also listens on this port of the loopback address. */
  readonly port?: number;
  /** Additional settings, e.g. `ssl=on`. */
  readonly settings?: readonly string[];
  /** The lines of pg_hba.conf, instead of the default, which lets every user in. */
  readonly rules?: readonly string[];
};

/**
 * Starts the server. `fsync` is off by default because tests don't have any data to lose.
 * @throws Error that says what to install
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = await findPostgres();
  const user = await postgresUser();
  const folder = await mkdtemp(join(tmpdir(), 'offhook-test-postgres-'));
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  await run(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'postgres', '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C'],
    { ...user, cwd: folder },
  );
  if (options.standby === true) await writeFile(join(data, 'standby.signal'), '');
  if (options.rules !== undefined) {
    await writeFile(join(data, 'pg_hba.conf'), `${options.rules.join('\n')}\n`);
  }
  const { port = 5_432 } = options;
  const settings = [
    `listen_addresses=${options.port === undefined ? '' : '127.0.0.1'}`,
    ...[`port=${port}`, ...(options.settings ?? [])],
  ];
  // The shell outlives this process for a moment. As soon as its pipe closes, which happens even if
  // this process is killed, it stops the server and removes the folder.
  const sync = options.fsync === true ? 'on' : 'off';
  const script = `programs=$1 folder=$2; shift 2
"$programs/postgres" -D "$folder/data" -k "$folder" "$@" -c fsync=${sync} -c full_page_writes=${sync} \
-c max_connections=400 -c shared_buffers=32MB >"$folder/log" 2>&1 & server=$!
cat >/dev/null; kill -INT $server; wait $server; rm -rf "$folder"`;
  const args = settings.flatMap((setting) => ['-c', setting]);
  const shell = spawn('sh', ['-c', script, 'sh', programs, folder, ...args], {
    ...user,
    cwd: folder,
    stdio: ['pipe', 'ignore', 'inherit'],
    // Ctrl-C must not reach the server before its clients are gone.
    detached: true,
  });
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    shell.stdin.end();
    await ended;
    // The shell may have been killed.
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const socketPath = join(folder, `.s.PGSQL.${port}`);
    await eventually(() => accepts(socketPath), 'PostgreSQL accepts connections', startTimeoutMs);
  } catch (error) {
    await stop();
    throw new Error('PostgreSQL did not start', { cause: error });
  }
  return {
    url: `postgres://postgres@/postgres?host=${encodeURIComponent(folder)}${options.port === undefined ? '' : `&port=${port}`}`,
    pid: shell.pid ?? 0,
    stop,
  };
}

/** Returns the folder of PostgreSQL's programs. */
export async function findPostgres(): Promise<string> {
  const debian = '/usr/lib/postgresql';
  const versions = await readdir(debian).catch(() => []);
  const newest = versions.toSorted((one, other) => Number(other) - Number(one))[0];
  if (newest !== undefined) return join(debian, newest, 'bin');
  try {
    return (await run('pg_config', ['--bindir'])).stdout.trim();
  } catch (cause) {
    throw new Error('the tests need PostgreSQL (Debian: apt-get install postgresql)', { cause });
  }
}

/** Returns the user to run PostgreSQL as, because PostgreSQL refuses to run as root. */
export async function postgresUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'postgres'])));
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
}

function accepts(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
