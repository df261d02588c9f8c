// Opens everything that calls need for SIP: the configured drachtio servers or the embedded engine,
// the trunks, the sandbox carrier, and the SIP port on top of them.

import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { SipCapture } from '../calls/capture/capture.ts';
import { type DrachtioServer, readSecrets } from '../config.ts';
import type { TlsTable } from '../embedded/drachtio/engine.ts';
import { startSipEngineThread } from '../embedded/drachtio/engine-thread.ts';
import { startSandboxThread } from '../embedded/sandbox/sandbox-thread.ts';
import type { EventConnection } from '../events/connection.ts';
import { requestLegEnd, serveLegRequests } from '../events/node-requests.ts';
import { errorForPeople } from '../lib/error-for-log.ts';
import { supervise } from '../lib/threads/supervise.ts';
import {
  createDrachtioSip,
  type DrachtioSip,
  type DrachtioSipOptions,
} from '../sip/drachtio-sip.ts';
import { createRouter, type Router } from '../sip/trunks/routing.ts';
import { readTrunkFile, sandboxIsOn, trunksOf } from '../sip/trunks/trunk-file.ts';
import {
  type LiveTrunks,
  liveTrunks,
  type TrunkDirectory,
  type TrunkFile,
} from '../sip/trunks/trunks.ts';
import type { Environment } from './environment.ts';
import { beyondLaptop, networksOpenTo } from './networks.ts';

export type SipParts = {
  readonly port: DrachtioSip;
  readonly router: Router;
  /** True if the SIP engines are drachtio servers, false for the embedded engine. */
  readonly isDrachtio: boolean;
  /** URL of the first engine's control connection. With the secret if the engine is our own. */
  readonly url: string;
  /** Addresses of all control connections, for the log. Contains no secrets. */
  readonly address: string;
  /** Where the sandbox carrier accepts INVITEs. Absent if the sandbox isn't running. */
  readonly sandbox?: string;
  /** Returns the state of the trunks' gateways, for the metrics and the console. */
  readonly gateways: () => ReturnType<DrachtioSip['gateways']>;
  /**
   * Names of the variables that go beyond a laptop's configuration. While this list is empty,
   * loopback addresses are allowed by default.
   */
  readonly beyondLaptop: readonly string[];
  /**
   * Reloads the trunks. If the new ones aren't valid, logs the problems and keeps the old ones.
   */
  reloadTrunks(): Promise<void>;
};

export async function openSip(
  environment: Environment,
  connection: EventConnection,
  capture: SipCapture,
): Promise<SipParts> {
  const { config, logger, clock, closers } = environment;
  const engine = config.drachtioServers === undefined ? await openEngine(environment) : undefined;
  const servers = engine === undefined ? (config.drachtioServers ?? []) : [engine.server];
  const file = await readTrunkFile(config);
  const sandbox = sandboxIsOn(config, file) ? await openSandbox(environment) : undefined;
  const read = (text: TrunkFile | undefined) =>
    trunksOf(config, { file: text, sandbox, secrets: readSecrets });
  const trunks = liveTrunks(read(file));
  const prepare = async (next: TrunkDirectory) => engine?.useTls(tlsTableOf(next));
  await prepare(trunks);
  const beyond = beyondLaptop(config, file !== undefined);
  const allowedNetworks =
    sandbox === undefined
      ? (config.sip.allowedNetworks ?? [])
      : networksOpenTo(config.sip.allowedNetworks, beyond);
  const port = createDrachtioSip({
    ...{ servers, trunks, allowedNetworks, logger, clock, capture },
    ...lookUpsOf(config),
    askOthers: (leg) => requestLegEnd(connection, leg),
  });
  closers.add('SIP port', () => port[Symbol.asyncDispose]());
  const legs = serveLegRequests(
    connection,
    async (leg) => (port.ready() ? await port.endOrphan(leg) : 'unreachable'),
    logger,
  );
  closers.add('legs of other nodes', () => legs.stop());
  return {
    port,
    router: createRouter({ trunks, allowedNetworks }),
    isDrachtio: config.drachtioServers !== undefined,
    url: drachtioUrl(servers[0], { isOurs: config.drachtioServers === undefined }),
    address: servers.map((server) => `${server.host}:${server.port}`).join(', '),
    ...(sandbox === undefined ? {} : { sandbox: `sip:${sandbox.host}:${sandbox.port}` }),
    gateways: () => port.gateways(),
    beyondLaptop: beyond,
    reloadTrunks: () => reload(environment, file, { trunks, port, read, prepare }),
  };
}

/**
 * The embedded engine sends over the IP version of SIP_HOST only. drachtio's configuration may have
 * both, and a call goes on to the next address if it doesn't.
 */
function lookUpsOf({
  dnsServers: servers,
  drachtioServers,
  sip,
}: Environment['config']): Pick<DrachtioSipOptions, 'dns'> {
  if (drachtioServers !== undefined) return { dns: { servers } };
  return { dns: { servers, families: [isIPv6(sip.host) ? 6 : 4] } };
}

type Reloaded = {
  readonly trunks: LiveTrunks;
  readonly port: DrachtioSip;
  readonly read: (file: TrunkFile) => TrunkDirectory;
  /** Tells the embedded engine what it has to know before calls use the trunks. */
  readonly prepare: (next: TrunkDirectory) => Promise<void>;
};

async function reload(
  { config, logger }: Environment,
  atStart: TrunkFile | undefined,
  { trunks, port, read, prepare }: Reloaded,
): Promise<void> {
  try {
    // Without trunks, the sandbox is on by default and loopback addresses are allowed. That must
    // change as soon as there's a carrier, which needs a restart.
    if (atStart === undefined)
      throw new Error('the process started without trunks; restart it to use them');
    const file = await readTrunkFile(config);
    // If the file has been deleted, we keep the old trunks. Otherwise calls would silently be sent
    // to the sandbox.
    if (file === undefined) throw new Error('there is no trunks file');
    const next = read(file);
    await prepare(next);
    trunks.replace(next);
    port.watchGateways();
    logger.info({ trunks: trunks.all.map(({ name }) => name) }, 'trunks reloaded');
  } catch (error) {
    // The problems include the system's error, e.g. EACCES for an unreadable file.
    const problems = errorForPeople(error)
      .split('\n')
      .map((line) => line.trim());
    logger.error({ problems }, 'the trunks were not reloaded; the old trunks stay in use');
  }
}

type EmbeddedEngine = {
  readonly server: DrachtioServer;
  readonly useTls: (table: TlsTable) => Promise<void>;
};

function tlsTableOf({ all }: TrunkDirectory): TlsTable {
  return Object.fromEntries(
    all.flatMap(({ name, tls }) => (tls === undefined ? [] : [[name, tls]])),
  );
}

/**
 * Starts the embedded SIP engine in a thread. If the thread dies, restarts it on the same ports.
 * The SIP port ends the engine's calls and reconnects.
 */
async function openEngine(environment: Environment): Promise<EmbeddedEngine> {
  const { config, logger, closers } = environment;
  const options = {
    sipHost: config.sip.host,
    sipPort: config.sip.port,
    controlHost: '127.0.0.1',
    controlPort: 0,
    // We generate a new secret for each start. The only copy outside this process is in
    // runtime.json.
    secret: randomBytes(24).toString('hex'),
    logLevel: config.logLevel,
    nodeId: config.nodeId,
  };
  const engine = await startSipEngineThread(options, logger).catch((cause: unknown) => {
    const { host, port } = config.sip;
    throw new Error(`the SIP engine does not start on SIP_HOST ${host}, SIP_PORT ${port}`, {
      cause,
    });
  });
  const { sipHost, sipPort, controlHost, controlPort } = engine;
  let tls: TlsTable = {};
  let current = engine;
  const restart = async () => {
    const given = tls;
    const next = await startSipEngineThread({ ...options, sipPort, controlPort, tls }, logger);
    current = next;
    if (tls !== given) await next.useTls(tls);
    return next;
  };
  const supervision = supervise(engine, restart, { name: 'SIP engine', logger });
  closers.add('SIP engine', () => supervision.close());
  logger.info({ sip: `${sipHost}:${sipPort}` }, 'embedded SIP engine is up');
  return {
    server: { host: controlHost, port: controlPort, secret: options.secret },
    useTls: async (table) => {
      tls = table;
      // If the thread has just died, the next one starts with this table.
      await current.useTls(table);
    },
  };
}

async function openSandbox({ config, logger, closers, onSandboxCallEnded }: Environment) {
  const { logLevel, nodeId } = config;
  const options = { sipHost: '127.0.0.1', logLevel, nodeId };
  const start = (sipPort = 0) =>
    startSandboxThread({ ...options, sipPort }, logger, onSandboxCallEnded);
  const sandbox = await start();
  // The sandbox's trunk contains the port, so a restarted sandbox has to use the same port.
  const restart = () => start(sandbox.port);
  const supervision = supervise(sandbox, restart, { name: 'sandbox', logger });
  closers.add('sandbox', () => supervision.close());
  return sandbox;
}

/** Contains the secret only if the engine is our own. */
function drachtioUrl(
  server: DrachtioServer | undefined,
  { isOurs }: { readonly isOurs: boolean },
): string {
  if (server === undefined) return '';
  const secret = isOurs ? `:${encodeURIComponent(server.secret)}@` : '';
  return `tcp://${secret}${server.host}:${server.port}`;
}
