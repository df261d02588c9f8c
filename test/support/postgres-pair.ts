// Two PostgreSQL servers, a primary and its synchronous standby, behind HAProxy with the
// configuration that sip-config ships. A test can kill, freeze, cut off and promote them. All three
// programs end with the test process.

import { execFile } from 'node:child_process';
import { chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { type KeptProgram, keepProgram } from './kept-program.ts';
import { findPostgres, postgresUser } from './postgres-server.ts';
import { processesUnder } from './process-tree.ts';

const run = promisify(execFile);
const proxyExample = fileURLToPath(
  new URL('../../sip-config/haproxy-postgres.cfg', import.meta.url),
);
const startTimeoutMs = 30_000;

export type PairServer = {
  readonly name: 'postgres-1' | 'postgres-2';
  /** URL of the server itself, without HAProxy, for the superuser. */
  readonly url: string;
  readonly folder: string;
  isRunning(): boolean;
  query<Row extends object>(statement: string): Promise<readonly Row[]>;
  start(): Promise<void>;
  /** Ends the server at once, as a crash does: it writes no checkpoint. */
  kill(): Promise<void>;
  /** Stops all its processes. The kernel keeps accepting connections and data for them. */
  freeze(): void;
  thaw(): void;
};

export type PostgresPair = AsyncDisposable & {
  /** URL through HAProxy, for the superuser and the database `postgres`. */
  readonly url: string;
  readonly primary: PairServer;
  readonly standby: PairServer;
  /**
   * Makes the standby the primary. First kills the old primary, as a cluster manager does, unless
   * `isFenced` is false. From then on the new primary doesn't wait for a standby.
   */
  promote(how?: { readonly isFenced: boolean }): Promise<void>;
  /** Makes the server that isn't the primary its synchronous standby again, with a new copy. */
  rebuild(): Promise<void>;
  /** Makes the primary read-only, or writable again. */
  setReadOnly(isOn: boolean): Promise<void>;
  /** Resolves when HAProxy lets clients through to the primary. */
  untilReachable(): Promise<void>;
  stop(): Promise<void>;
};

export type PostgresPairOptions = {
  /** Folders to create the servers' data in, e.g. small file systems. Default: the system's. */
  readonly parents?: readonly [string, string];
  /** Whether commits wait for the standby. Default: true. */
  readonly isSynchronous?: boolean;
};

export async function startPostgresPair(options: PostgresPairOptions = {}): Promise<PostgresPair> {
  const { parents = [tmpdir(), tmpdir()], isSynchronous = true } = options;
  const cleanups: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    const one = await makeServer('postgres-1', parents[0]);
    cleanups.push(() => one.remove());
    const two = await makeServer('postgres-2', parents[1]);
    cleanups.push(() => two.remove());
    let [primary, standby] = [one, two];
    await primary.initialise();
    await primary.start();
    await primary.query('create role haproxy login connection limit 8');
    const rebuild = async (): Promise<void> => {
      await standby.kill();
      await standby.copyFrom(primary);
      await standby.start();
      const streaming = `select from pg_stat_replication where state = 'streaming'`;
      const isStreaming = async () => (await primary.query(streaming)).length === 1;
      await eventually(isStreaming, 'the standby streams', startTimeoutMs);
      if (isSynchronous) await setIn(primary, 'synchronous_standby_names', '*');
    };
    await rebuild();
    const proxy = await startProxy([one.port, two.port]);
    cleanups.push(() => proxy.remove());
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
    const untilReachable = () =>
      eventually(() => isWritable(url), 'HAProxy finds the primary', startTimeoutMs);
    await untilReachable();
    return {
      url,
      get primary() {
        return primary;
      },
      get standby() {
        return standby;
      },
      promote: async ({ isFenced } = { isFenced: true }) => {
        if (isFenced) await primary.kill();
        await standby.query('select pg_promote()');
        await setIn(standby, 'synchronous_standby_names', '');
        [primary, standby] = [standby, primary];
      },
      rebuild,
      setReadOnly: (isOn) => setIn(primary, 'default_transaction_read_only', isOn ? 'on' : 'off'),
      untilReachable,
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

type OwnServer = PairServer & {
  readonly port: number;
  /** Creates an empty database. */
  initialise(): Promise<void>;
  /** Replaces the data by a copy of the primary's, and follows the primary from then on. */
  copyFrom(primary: OwnServer): Promise<void>;
  remove(): Promise<void>;
};

async function makeServer(name: PairServer['name'], parent: string): Promise<OwnServer> {
  const programs = await findPostgres();
  const user = await postgresUser();
  const folder = await mkdtemp(join(parent, 'offhook-test-pair-'));
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const port = await freeUdpPort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let server: KeptProgram | undefined;
  const call = (program: string, args: readonly string[]) =>
    run(join(programs, program), args, { ...user, cwd: folder });
  const signal = (wanted: NodeJS.Signals): void => {
    if (server === undefined) return;
    // PostgreSQL's children are in process groups of their own. The first of them is their parent:
    // once it has stopped, there are no new ones.
    const first = server.pid;
    process.kill(first, wanted);
    for (const { pid } of processesUnder(first)) if (pid !== first) process.kill(pid, wanted);
  };
  const kill = async (): Promise<void> => {
    await server?.end('QUIT');
    server = undefined;
  };
  return {
    name,
    url,
    port,
    folder,
    isRunning: () => server !== undefined && !server.hasEnded(),
    query: (statement) => queryAt(url, statement),
    initialise: async () => {
      const how = ['--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C'];
      await call('initdb', ['-D', data, '-U', 'postgres', ...how]);
    },
    copyFrom: async (primary) => {
      await rm(data, { recursive: true, force: true });
      const from = `host=127.0.0.1 port=${primary.port} user=postgres application_name=${name}`;
      await call('pg_basebackup', ['-D', data, '-R', '--checkpoint=fast', '--no-sync', '-d', from]);
    },
    start: async () => {
      // A server that ended by itself, e.g. because its disk was full, has left its shell behind.
      await kill();
      const settings = [
        ...['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${folder}`],
        ...['max_connections=400', 'shared_buffers=32MB', 'wal_keep_size=1GB', 'fsync=off'],
        // A frozen or disconnected primary must notice that its standby has gone, and vice versa.
        ...['wal_sender_timeout=5s', 'wal_receiver_timeout=5s'],
      ];
      server = await keepProgram({
        program: join(programs, 'postgres'),
        args: ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
        ...{ logFile: join(folder, 'log'), cwd: folder, user },
      });
      const started = server;
      await eventually(
        async () => {
          if (started.hasEnded()) throw new Error(`${name} ended:\n${await logOf(folder)}`);
          return await answers(url);
        },
        `${name} answers`,
        startTimeoutMs,
      );
    },
    kill,
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    remove: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Starts HAProxy with the example in sip-config, except for its addresses. */
async function startProxy(
  ports: readonly [number, number],
): Promise<{ readonly port: number; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-test-haproxy-'));
  const port = await freeUdpPort();
  const config = (await readFile(proxyExample, 'utf8'))
    .replace('bind 127.0.0.1:5432', `bind 127.0.0.1:${port}`)
    .replace('10.0.0.7:5432', `127.0.0.1:${ports[0]}`)
    .replace('10.0.0.8:5432', `127.0.0.1:${ports[1]}`);
  const configFile = join(folder, 'haproxy.cfg');
  await writeFile(configFile, config);
  const haproxy = await keepProgram({
    program: 'haproxy',
    args: ['-db', '-f', configFile],
    ...{ logFile: join(folder, 'log'), cwd: folder },
  });
  return {
    port,
    remove: async () => {
      await haproxy.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function logOf(folder: string): Promise<string> {
  return (await readFile(join(folder, 'log'), 'utf8')).slice(-2_000);
}

async function setIn(server: OwnServer, name: string, value: string): Promise<void> {
  await server.query(`alter system set ${name} = '${value}'`);
  await server.query('select pg_reload_conf()');
  const hasValue = async () => {
    const [row] = await server.query<{ value: string }>(`select current_setting('${name}') value`);
    return row?.value === value;
  };
  await eventually(hasValue, `${name} of ${server.name} is '${value}'`);
}

const answers = (url: string): Promise<boolean> => passes(url, 'select 1');

/** The statement needs a transaction id, which a standby and a read-only server don't assign. */
const isWritable = (url: string): Promise<boolean> => passes(url, 'select txid_current()');

async function passes(url: string, statement: string): Promise<boolean> {
  return await queryAt(url, statement).then(
    () => true,
    () => false,
  );
}

async function queryAt<Row extends object>(
  url: string,
  statement: string,
): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // The server may end before the connection has closed.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
