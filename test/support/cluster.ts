// Starts several gateway processes as in production, with one PostgreSQL, one NATS, one SIP engine
// in its own process, and one trunk to phones that record every call. Tests can kill, stop and
// restart each part.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type NatsServer, startNatsServer } from '../../src/embedded/nats/nats-server.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createAppIn } from './apps.ts';
import type { DevApp } from './dialer-client.ts';
import { startDrachtioServer } from './drachtio-server.ts';
import { FarEnd, type FarVoices } from './far-end.ts';
import { freeUdpPort } from './free-port.ts';
import { type GatewayProcess, startGateway } from './gateway-process.ts';
import { PhoneVoices } from './phone-voices.ts';
import { type Receiver, startReceiver } from './receiver.ts';

const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export type ClusterOptions = {
  /**
   * The URL of an empty database that no other test uses. Default: each node has an embedded
   * database, with the `dev` app.
   */
  readonly databaseUrl?: string;
  /** Additional lines for the trunk, e.g. `callsPerSecond: 20`. */
  readonly trunk?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  /** The port at which the phones receive audio. Default: they receive no audio. */
  readonly audioPort?: number;
  /**
   * Whether the phones with a voice talk, or who talks for them. The caller closes the latter.
   * Default: false.
   */
  readonly voices?: boolean | FarVoices;
  /** The URL of a NATS that is already running. Default: starts a server. */
  readonly natsUrl?: string;
  /** The program of a drachtio-server to use as SIP engine. Default: the embedded engine. */
  readonly drachtio?: string | undefined;
  /** Creates the app and the tables. Default: the code of this version. */
  readonly createApp?: (databaseUrl: string, secretsKey: string) => Promise<DevApp>;
};

export type Part = { kill(): Promise<void>; stop(): void; resume(): void; start(): Promise<void> };

export type Cluster = AsyncDisposable & {
  readonly farEnd: FarEnd;
  readonly receiver: Receiver;
  /** Restarts automatically if a test kills it. Has no process id if the test has started it. */
  readonly nats: Pick<NatsServer, 'url' | 'pid'>;
  readonly engine: Part & { readonly url: string };
  /** Starts the node `name`. Using the same name again restarts it. */
  startNode(
    name: string,
    variables?: Readonly<Record<string, string>>,
    /** The folder of another build. Default: `dist`. */
    build?: string,
  ): Promise<GatewayProcess>;
  /** Runs an `offhook` command that works on the database and on NATS. Returns what it prints. */
  readonly offhook: (...args: readonly string[]) => Promise<string>;
};

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-cluster-'));
  const cleanups: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })];
  const dispose = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    const own = options.voices === true ? await PhoneVoices.start() : undefined;
    if (own !== undefined) cleanups.push(() => own[Symbol.asyncDispose]());
    const others = typeof options.voices === 'object' ? options.voices : undefined;
    const farEnd = await FarEnd.start(options.audioPort, own ?? others);
    cleanups.push(() => farEnd[Symbol.asyncDispose]());
    const receiver = await startReceiver();
    cleanups.push(() => receiver.close());
    const { nats, stop: stopNats } = await natsOf(options, folder);
    cleanups.push(stopNats);
    const engine = await startEngine(options.drachtio);
    cleanups.push(() => engine.close());
    const trunksFile = join(folder, 'trunks.yaml');
    await writeFile(trunksFile, trunkFile(farEnd.port, options.trunk ?? []));
    const secretsKey = randomBytes(32).toString('hex');
    const createApp = options.createApp ?? createAppIn;
    const { databaseUrl } = options;
    const app = databaseUrl === undefined ? undefined : await createApp(databaseUrl, secretsKey);
    const startNode: Cluster['startNode'] = async (name, variables = {}, build) => {
      const gateway = await startGateway(
        join(folder, name),
        {
          NODE_ID: name,
          ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
          NATS_URL: nats.url,
          DRACHTIO_URL: engine.url,
          SECRETS_KEY: secretsKey,
          TRUNKS_FILE: trunksFile,
          NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
          // The phones send no audio.
          RTP_INACTIVITY_TIMEOUT_MS: '3600000',
          ...stormMediaPorts(),
          ...options.variables,
          ...variables,
        },
        app,
        build,
      );
      cleanups.push(() => {
        // A process can't handle SIGTERM while SIGSTOP has stopped it.
        gateway.child.kill('SIGCONT');
        return gateway.terminate();
      });
      return gateway;
    };
    return {
      farEnd,
      receiver,
      nats,
      engine,
      startNode,
      offhook: async (...args) => {
        const { stdout } = await promisify(execFile)(process.execPath, [cli, ...args], {
          env: {
            ...{ PATH: process.env['PATH'], DATA_DIR: join(folder, 'offhook'), LOG_LEVEL: 'warn' },
            ...{ DATABASE_URL: options.databaseUrl, NATS_URL: nats.url, SECRETS_KEY: secretsKey },
          },
        });
        return stdout.trim();
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function natsOf(
  { natsUrl }: ClusterOptions,
  folder: string,
): Promise<{ readonly nats: Cluster['nats']; readonly stop: () => Promise<void> }> {
  if (natsUrl !== undefined) {
    return { nats: { url: natsUrl, pid: undefined }, stop: () => Promise.resolve() };
  }
  const nats = await startNatsServer({
    dataDir: join(folder, 'nats'),
    searchPath: process.env['PATH'] ?? '',
    logger: silentLogger,
  });
  return { nats, stop: () => nats.stop() };
}

function trunkFile(port: number, lines: readonly string[]): string {
  return [
    'trunks:',
    '  - name: phones',
    '    default: true',
    '    numberFormat: digits',
    `    gateways: [{ host: 127.0.0.1, port: ${port} }]`,
    ...lines.map((line) => `    ${line}`),
    '',
  ].join('\n');
}

let ranges = 0;

/**
 * Gives the nodes in a storm or a bench disjoint media ports. Under vitest, `startGateway` does
 * that.
 */
function stormMediaPorts(): Record<string, string> {
  if (process.env['VITEST'] !== undefined) return {};
  ranges += 1;
  const first = 20_000 + ((process.pid + ranges) % 20) * 2_000;
  return { MEDIA_PORT_MIN: String(first), MEDIA_PORT_MAX: String(first + 1_998) };
}

type Engine = Cluster['engine'] & { close(): Promise<void> };

const engineSecret = 'cluster';
const engineUrl = (controlPort: number) => `tcp://:${engineSecret}@127.0.0.1:${controlPort}`;

async function startEngine(drachtio: string | undefined): Promise<Engine> {
  if (drachtio === undefined) return await startEmbeddedEngine();
  const server = await startDrachtioServer({ binary: drachtio, secret: engineSecret });
  return { ...server, url: engineUrl(server.controlPort) };
}

async function startEmbeddedEngine(): Promise<Engine> {
  const [sipPort, controlPort] = [await freeUdpPort(), await freeUdpPort()];
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const started = spawn(
      process.execPath,
      [
        ...[cli, 'sip-engine', '--sip-port', String(sipPort)],
        ...['--control-port', String(controlPort), '--secret', engineSecret],
      ],
      {
        env: { PATH: process.env['PATH'], LOG_LEVEL: 'error' },
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    child = started;
    await Promise.race([
      once(createInterface(started.stdout), 'line'),
      once(started, 'exit').then(() => Promise.reject(new Error('the SIP engine did not start'))),
    ]);
  };
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  await start();
  return {
    ...{ url: engineUrl(controlPort), start, kill, close: kill },
    stop: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
  };
}
