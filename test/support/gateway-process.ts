// The gateway as its users run it: a process of its own, from the build, with its own DATA_DIR and free ports. Can be killed
// and started again on what it left.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDialer, type DevApp, readDevApp } from './dialer-client.ts';
import { freePortRange } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
/**
 * For a process that lives for seconds: optimising its WebAssembly would take a third of the CPU that a start takes, and its JavaScript a
 * fifth, so that this begins after fifteen times as much of it has run. Benches measure what users run.
 */
export const forAShortLife: readonly string[] =
  process.env['VITEST'] === undefined ? [] : ['--liftoff-only', '--interrupt-budget=1000000'];
/**
 * What is said to a call that is over is heard by none of another gateway's. Tests have at most sixty calls at once, some of two legs; a
 * gateway of a bench is alone, and has the ports that users have.
 */
const testMediaPorts = 300;
/** A machine with ten other things to do needs its time. */
const startTimeoutMs = 60_000;

export type RuntimeFile = {
  readonly httpUrl: string;
  readonly natsUrl: string;
  readonly drachtioUrl: string;
  readonly pid: number;
};

export type GatewayProcess = {
  readonly child: ChildProcess;
  readonly runtime: RuntimeFile;
  readonly dialer: Awaited<ReturnType<typeof createDialer>>;
  readonly dataDir: string;
  /** What it wrote so far. */
  output(): string;
  kill(): Promise<void>;
  /** SIGTERM; the exit code. */
  terminate(): Promise<number | null>;
};

export async function makeDataDir(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'offhook-gateway-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Variables given win over free ports and quiet logs. `app`: absent in the embedded profile, which makes its own. */
export async function startGateway(
  dataDir: string,
  variables: Readonly<Record<string, string>> = {},
  app?: DevApp,
  /** The folder of another build. */
  build = dist,
): Promise<GatewayProcess> {
  const hasOwnPorts = process.env['VITEST'] === undefined || 'MEDIA_PORT_MIN' in variables;
  const media = hasOwnPorts ? undefined : await freePortRange(testMediaPorts);
  const child = spawn(process.execPath, [...forAShortLife, join(build, 'main.js')], {
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: dataDir,
      HTTP_PORT: '0',
      SIP_PORT: '0',
      LOG_LEVEL: 'warn',
      SHUTDOWN_TIMEOUT_MS: '0',
      ...(media && {
        MEDIA_PORT_MIN: String(media.portMin),
        MEDIA_PORT_MAX: String(media.portMax),
      }),
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  keepLog(() => output);
  const exited = once(child, 'exit');
  child.once('exit', () => void media?.[Symbol.asyncDispose]());
  const runtime = await untilUp(child, dataDir, () => output);
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await exited;
    }
    return child.exitCode;
  };
  return {
    child,
    runtime,
    dataDir,
    dialer: await createDialer(runtime.httpUrl, app ?? (await readDevApp(dataDir))),
    output: () => output,
    kill: async () => void (await end('SIGKILL')),
    terminate: () => end('SIGTERM'),
  };
}

/** A runtime file of the process before it may still be there: the pid tells. */
async function untilUp(
  child: ChildProcess,
  dataDir: string,
  output: () => string,
): Promise<RuntimeFile> {
  const deadline = performance.now() + startTimeoutMs;
  while (performance.now() < deadline) {
    if (child.exitCode !== null)
      throw new Error(`the gateway ended (${child.exitCode}):\n${output()}`);
    const runtime = await readFile(join(dataDir, 'runtime.json'), 'utf8')
      .then((text) => JSON.parse(text) as RuntimeFile)
      .catch(() => undefined);
    if (runtime?.pid === child.pid && runtime !== undefined) return runtime;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  child.kill('SIGKILL');
  throw new Error(`the gateway did not start in time:\n${output()}`);
}
