// SIP: the configured drachtio servers or the embedded engine, the trunks, the sandbox carrier, and the port over them.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Environment } from './app.ts';
import { type Config, type DrachtioServer, readSecrets } from './config.ts';
import { startSipEngineThread } from './embedded/drachtio/engine-thread.ts';
import { startSandboxThread } from './embedded/sandbox/sandbox-thread.ts';
import { createDrachtioSip, type DrachtioSip } from './sip/drachtio-sip.ts';
import { createRouter, type Router } from './sip/routing.ts';
import { builtInTrunk, loadTrunks, type TrunkDirectory, type TrunkFile } from './sip/trunks.ts';

export type SipParts = {
  readonly port: DrachtioSip;
  readonly router: Router;
  /** Control connection of the first server, with its secret. */
  readonly url: string;
  /** Without. */
  readonly address: string;
  /** Where the sandbox takes INVITEs. */
  readonly sandbox?: string;
};

const loopbackNetworks = ['127.0.0.0/8', '::1/128'];

export async function openSip(environment: Environment): Promise<SipParts> {
  const { config, logger, clock, closers } = environment;
  const servers = config.drachtioServers ?? [await openEngine(environment)];
  const file = await readTrunkFile(config);
  const sandbox = sandboxIsOn(config, file) ? await openSandbox(environment) : undefined;
  const trunks = openTrunks(file, sandbox);
  const onlySandbox = file === undefined && sandbox !== undefined;
  const allowedNetworks = config.sip.allowedNetworks ?? (onlySandbox ? loopbackNetworks : []);
  const port = createDrachtioSip({ servers, trunks, allowedNetworks, logger, clock });
  closers.add('SIP port', () => port[Symbol.asyncDispose]());
  return {
    port,
    router: createRouter({ trunks, allowedNetworks }),
    url: drachtioUrl(servers[0]),
    address: servers.map((server) => `${server.host}:${server.port}`).join(', '),
    ...(sandbox === undefined ? {} : { sandbox: `sip:${sandbox.host}:${sandbox.port}` }),
  };
}

async function openEngine({
  config,
  logger,
  closers,
  onFatal,
}: Environment): Promise<DrachtioServer> {
  // Made anew at each start: nobody but this process and whoever may read runtime.json should know it.
  const secret = randomBytes(24).toString('hex');
  const engine = await startSipEngineThread(
    {
      sipHost: config.sip.host,
      sipPort: config.sip.port,
      controlHost: '127.0.0.1',
      controlPort: 0,
      secret,
      logLevel: config.logLevel,
      nodeId: config.nodeId,
    },
    { onExit: (error) => onFatal(error ?? new Error('the SIP engine ended')) },
  );
  closers.add('SIP engine', () => engine.close());
  logger.info({ sip: `${engine.sipHost}:${engine.sipPort}` }, 'embedded SIP engine is up');
  return { host: engine.controlHost, port: engine.controlPort, secret };
}

async function openSandbox({ config, logger, closers }: Environment) {
  const { logLevel, nodeId } = config;
  const sandbox = await startSandboxThread(
    { sipHost: '127.0.0.1', logLevel, nodeId },
    { onExit: (error) => logger.error({ err: error }, 'the sandbox carrier ended') },
  );
  closers.add('sandbox', () => sandbox.close());
  return sandbox;
}

function sandboxIsOn(config: Config, file: TrunkFile | undefined): boolean {
  return config.sandbox === undefined ? file === undefined : config.sandbox === 'on';
}

function openTrunks(
  file: TrunkFile | undefined,
  sandbox: { readonly host: string; readonly port: number } | undefined,
): TrunkDirectory {
  return loadTrunks({
    secrets: (names) => readSecrets(names),
    builtIn:
      sandbox === undefined
        ? []
        : [builtInTrunk('sandbox', { host: sandbox.host, port: sandbox.port, transport: 'udp' })],
    ...(file === undefined ? {} : { file }),
  });
}

/** TRUNKS_FILE must be there when it is named; sip-config/trunks.yaml need not. */
async function readTrunkFile(config: Config): Promise<TrunkFile | undefined> {
  const path =
    config.trunksFile ?? fileURLToPath(new URL('../sip-config/trunks.yaml', import.meta.url));
  if (config.trunksFile === undefined && !existsSync(path)) return undefined;
  try {
    return { name: basename(path), text: await readFile(path, 'utf8') };
  } catch (error) {
    throw new Error(`TRUNKS_FILE cannot be read: ${path}`, { cause: error });
  }
}

function drachtioUrl(server: DrachtioServer | undefined): string {
  if (server === undefined) return '';
  return `tcp://:${encodeURIComponent(server.secret)}@${server.host}:${server.port}`;
}
