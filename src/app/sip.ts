// SIP: the configured drachtio servers or the embedded engine, the trunks, the sandbox carrier, and the port over them.

import { randomBytes } from 'node:crypto';
import type { SipCapture } from '../calls/capture/capture.ts';
import { type DrachtioServer, readSecrets } from '../config.ts';
import { startSipEngineThread } from '../embedded/drachtio/engine-thread.ts';
import { startSandboxThread } from '../embedded/sandbox/sandbox-thread.ts';
import type { EventConnection } from '../events/connection.ts';
import { askForLegEnd, serveLegRequests } from '../events/node-requests.ts';
import { errorForPeople } from '../lib/error-for-log.ts';
import { supervise } from '../lib/threads/supervise.ts';
import { createDrachtioSip, type DrachtioSip } from '../sip/drachtio-sip.ts';
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
  /** The SIP engine is a drachtio-server. */
  readonly isDrachtio: boolean;
  /** Control connection of the first server, with its secret. */
  readonly url: string;
  /** Without. */
  readonly address: string;
  /** Where the sandbox takes INVITEs. */
  readonly sandbox?: string;
  /** For metrics. */
  readonly gateways: () => ReturnType<DrachtioSip['gateways']>;
  /** Variables that make this more than a laptop's gateway; none: loopback may be open. */
  readonly beyondLaptop: readonly string[];
  /** Reads the trunks again. What is wrong with them is logged, and they stay as they were. */
  reloadTrunks(): Promise<void>;
};

export async function openSip(
  environment: Environment,
  connection: EventConnection,
  capture: SipCapture,
): Promise<SipParts> {
  const { config, logger, clock, closers } = environment;
  const servers = config.drachtioServers ?? [await openEngine(environment)];
  const file = await readTrunkFile(config);
  const sandbox = sandboxIsOn(config, file) ? await openSandbox(environment) : undefined;
  const read = (text: TrunkFile | undefined) =>
    trunksOf(config, { file: text, sandbox, secrets: readSecrets });
  const trunks = liveTrunks(read(file));
  const beyond = beyondLaptop(config, file !== undefined);
  const allowedNetworks =
    sandbox === undefined
      ? (config.sip.allowedNetworks ?? [])
      : networksOpenTo(config.sip.allowedNetworks, beyond);
  const port = createDrachtioSip({
    ...{ servers, trunks, allowedNetworks, logger, clock, capture },
    askOthers: (leg) => askForLegEnd(connection, leg),
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
    url: drachtioUrl(servers[0]),
    address: servers.map((server) => `${server.host}:${server.port}`).join(', '),
    ...(sandbox === undefined ? {} : { sandbox: `sip:${sandbox.host}:${sandbox.port}` }),
    gateways: () => port.gateways(),
    beyondLaptop: beyond,
    reloadTrunks: () => reload(environment, file, { trunks, port, read }),
  };
}

type Reloaded = {
  readonly trunks: LiveTrunks;
  readonly port: DrachtioSip;
  readonly read: (file: TrunkFile) => TrunkDirectory;
};

async function reload(
  { config, logger }: Environment,
  atStart: TrunkFile | undefined,
  { trunks, port, read }: Reloaded,
): Promise<void> {
  try {
    // The sandbox is on, and loopback is open: neither goes together with a carrier.
    if (atStart === undefined) throw new Error('started without trunks; start again to have them');
    const file = await readTrunkFile(config);
    // Nothing is better: without a file, calls would fall to the sandbox in silence.
    if (file === undefined) throw new Error('there is no trunks file');
    trunks.replace(read(file));
    port.watchGateways();
    logger.info({ trunks: trunks.all.map(({ name }) => name) }, 'trunks reloaded');
  } catch (error) {
    // With what the system said, e.g. EACCES: the file is there, and may not be read.
    const problems = errorForPeople(error)
      .split('\n')
      .map((line) => line.trim());
    logger.error({ problems }, 'trunks not reloaded, the old ones stay');
  }
}

/** A thread that dies is started again on the same ports; the SIP port settles its calls and connects again by itself. */
async function openEngine(environment: Environment): Promise<DrachtioServer> {
  const { config, logger, closers } = environment;
  const options = {
    sipHost: config.sip.host,
    sipPort: config.sip.port,
    controlHost: '127.0.0.1',
    controlPort: 0,
    // Made anew at each start: only this process and users who may read runtime.json should know it.
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
  const again = () => startSipEngineThread({ ...options, sipPort, controlPort }, logger);
  const supervision = supervise(engine, again, { name: 'SIP engine', logger });
  closers.add('SIP engine', () => supervision.close());
  logger.info({ sip: `${sipHost}:${sipPort}` }, 'embedded SIP engine is up');
  return { host: controlHost, port: controlPort, secret: options.secret };
}

async function openSandbox({ config, logger, closers, onSandboxCallEnded }: Environment) {
  const { logLevel, nodeId } = config;
  const options = { sipHost: '127.0.0.1', logLevel, nodeId };
  const start = (sipPort = 0) =>
    startSandboxThread({ ...options, sipPort }, logger, onSandboxCallEnded);
  const sandbox = await start();
  // At the same port, which the trunk has.
  const again = () => start(sandbox.port);
  const supervision = supervise(sandbox, again, { name: 'sandbox', logger });
  closers.add('sandbox', () => supervision.close());
  return sandbox;
}

function drachtioUrl(server: DrachtioServer | undefined): string {
  if (server === undefined) return '';
  return `tcp://:${encodeURIComponent(server.secret)}@${server.host}:${server.port}`;
}
