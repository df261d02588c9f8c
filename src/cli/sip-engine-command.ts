// Implements `offhook sip-engine`, which runs the embedded SIP engine as a separate process. One or
// more gateways can use the engine through DRACHTIO_URL.

import { randomBytes } from 'node:crypto';
import { createLogger } from '../lib/logger.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import { whenInterrupted } from './listen-command.ts';

export type SipEngineOptions = {
  readonly sipHost?: string;
  readonly sipPort?: string;
  readonly controlHost: string;
  readonly controlPort: string;
  readonly secret?: string;
};

export async function runSipEngine(context: CliContext, options: SipEngineOptions): Promise<void> {
  const { config } = context;
  const secret = options.secret ?? randomBytes(24).toString('hex');
  // We don't load the engine until now, so that other commands can start without it.
  const { startSipEngine } = await import('../embedded/drachtio/engine.ts');
  const engine = await startSipEngine({
    sipHost: options.sipHost ?? config.sip.host,
    sipPort: parsePort('--sip-port', options.sipPort ?? String(config.sip.port)),
    controlHost: options.controlHost,
    controlPort: parsePort('--control-port', options.controlPort),
    secret,
    // Log to stderr, because stdout is reserved for the line that programs read.
    logger: createLogger({ level: config.logLevel, nodeId: config.nodeId, toStderr: true }),
  }).catch((error: unknown) => {
    throw new CliError('The SIP engine did not start.', { cause: error });
  });
  context.print(
    JSON.stringify({
      drachtioUrl: `tcp://:${encodeURIComponent(secret)}@${bracketed(engine.controlHost)}:${engine.controlPort}`,
      sipUri: `sip:${bracketed(engine.sipHost)}:${engine.sipPort}`,
      pid: process.pid,
    }),
  );
  await whenInterrupted(context.interrupted);
  await engine.close();
}

function parsePort(option: string, text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new CliError(`${option} must be 0 to 65535`);
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
