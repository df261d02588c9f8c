// Starts several nats-servers that form a JetStream cluster, in a folder of their own. Each server
// keeps its ports and its store, so tests can kill, freeze, restart and wipe each of them.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { jetstreamManager, StorageType } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { type KeptProgram, keepProgram } from './kept-program.ts';

const password = 'cluster';
/** The servers elect a leader within seconds, but the machine may be busy. */
const readyTimeoutMs = 30_000;

export type NatsNode = {
  readonly name: string;
  /** `nats://user:password@127.0.0.1:port` of this server alone. */
  readonly url: string;
  readonly port: number;
  /** The log of the server since its last start. */
  output(): Promise<string>;
  /** Ends the server with SIGKILL. Its store remains. */
  kill(): Promise<void>;
  /** Ends the server with SIGTERM, so that it writes its store. */
  stop(): Promise<void>;
  /** Stops the process with SIGSTOP: connections stay open, but nothing responds. */
  freeze(): void;
  thaw(): void;
  /** Starts the server if it doesn't run. Resolves once it accepts connections. */
  start(): Promise<void>;
  /** Removes the store. The server must not be running. */
  wipe(): Promise<void>;
};

export type NatsCluster = AsyncDisposable & {
  /** The URLs of all servers, separated by commas. */
  readonly url: string;
  readonly nodes: readonly NatsNode[];
  /** Resolves once streams can be created with as many replicas as there are servers. */
  untilReady(): Promise<void>;
};

export type NatsClusterOptions = {
  /** Default: 3. A single server doesn't form a cluster. */
  readonly servers?: number;
  /** Size of each server's store. Default: 1 GB. */
  readonly maxFileStoreBytes?: number;
  /** Folders to keep the stores in, e.g. small file systems, one per server. */
  readonly storeFolders?: readonly string[];
  /** False: servers run without JetStream. Default: true. */
  readonly jetstream?: boolean;
  /** False: returns before the servers have started. Default: true. */
  readonly isStarted?: boolean;
};

export async function startNatsCluster(options: NatsClusterOptions = {}): Promise<NatsCluster> {
  const { servers = 3, maxFileStoreBytes = 1_000_000_000, jetstream = true } = options;
  const folder = await mkdtemp(join(tmpdir(), 'offhook-nats-cluster-'));
  const ports: { readonly client: number; readonly route: number }[] = [];
  for (let count = 0; count < servers; count += 1) {
    ports.push({ client: await freeUdpPort(), route: await freeUdpPort() });
  }
  const nodes = await Promise.all(
    ports.map(async ({ client, route }, index) => {
      const name = `nats-${index + 1}`;
      const store = join(options.storeFolders?.[index] ?? folder, name);
      const routes = ports.filter((_, other) => other !== index).map((other) => other.route);
      const configuration = join(folder, `${name}.conf`);
      await writeFile(
        configuration,
        [
          `server_name: ${name}`,
          `listen: 127.0.0.1:${client}`,
          `authorization { user: offhook, password: ${password} }`,
          ...(jetstream
            ? [`jetstream { store_dir: "${store}", max_file_store: ${maxFileStoreBytes} }`]
            : []),
          ...(servers === 1 ? [] : [clusterBlock(route, routes)]),
          '',
        ].join('\n'),
      );
      return createNode({ name, port: client, store, configuration });
    }),
  );
  const url = nodes.map((node) => node.url).join(',');
  const untilReady = () => eventually(() => isReady(nodes), 'the NATS cluster', readyTimeoutMs);
  const dispose = async (): Promise<void> => {
    for (const node of nodes) node.thaw();
    await Promise.all(nodes.map((node) => node.kill()));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    if (options.isStarted !== false) {
      await Promise.all(nodes.map((node) => node.start()));
      if (jetstream) await untilReady();
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  return { url, nodes, untilReady, [Symbol.asyncDispose]: dispose };
}

/** Clients use only the URLs that they were given, so that tests can put a wire before a server. */
function clusterBlock(port: number, routes: readonly number[]): string {
  const urls = routes.map((route) => `nats://127.0.0.1:${route}`).join(', ');
  return `cluster { name: test, listen: 127.0.0.1:${port}, routes: [${urls}], no_advertise: true }`;
}

type Place = {
  readonly name: string;
  readonly port: number;
  readonly store: string;
  readonly configuration: string;
};

function createNode({ name, port, store, configuration }: Place): NatsNode {
  const logFile = `${configuration}.log`;
  let server: KeptProgram | undefined;
  const isRunning = () => server !== undefined && !server.hasEnded();
  const end = async (signal: 'TERM' | 'KILL'): Promise<void> => {
    await server?.end(signal);
    server = undefined;
  };
  const signal = (name: NodeJS.Signals): void => {
    if (server !== undefined && isRunning()) process.kill(server.pid, name);
  };
  return {
    name,
    port,
    url: `nats://offhook:${password}@127.0.0.1:${port}`,
    output: () => readFile(logFile, 'utf8'),
    kill: () => end('KILL'),
    stop: () => end('TERM'),
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    start: async () => {
      if (isRunning()) return;
      // A server that ended by itself has left its shell behind.
      await end('KILL');
      await rm(logFile, { force: true });
      server = await keepProgram({
        ...{ program: 'nats-server', args: ['--config', configuration] },
        ...{ logFile, cwd: dirname(configuration) },
      });
      await eventually(() => accepts(port), `${name} accepts connections`, readyTimeoutMs);
    },
    wipe: () => rm(store, { recursive: true, force: true }),
  };
}

async function isReady(nodes: readonly NatsNode[]): Promise<boolean> {
  const nats = await connect({
    servers: nodes.map(({ port }) => `127.0.0.1:${port}`),
    ...{ user: 'offhook', pass: password },
  }).catch(() => undefined);
  if (nats === undefined) return false;
  try {
    const { streams } = await jetstreamManager(nats, { timeout: 2_000 });
    const name = 'cluster_is_ready';
    await streams.add({
      ...{ name, subjects: [name], storage: StorageType.Memory },
      num_replicas: nodes.length,
    });
    await streams.delete(name);
    return true;
  } catch {
    return false;
  } finally {
    await nats.close();
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectSocket(port, '127.0.0.1');
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
