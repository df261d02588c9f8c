// Runs the gateway the way users do: in its own process, from the build, with its own DATA_DIR and
// free ports. Tests can kill it and restart it on the same data.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json' with { type: 'json' };
import { createDialer, type DevApp, readDevApp } from './dialer-client.ts';
import { eventually } from './eventually.ts';
import { freePortRange } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
const isTest = process.env['VITEST'] !== undefined;
/**
 * The command with which users start a gateway. Benches use its options and variables. It gives
 * V8's compilers and collectors one thread, because each of four would keep up to 20 MB, which the
 * optimising compiler needs for a large function of PGlite.
 */
const { start } = manifest.scripts;
/**
 * A process under test lives only for seconds. Optimising WebAssembly would take a third of its
 * start's CPU time, and optimising JavaScript a fifth. With these options, Node waits for fifteen
 * times as much executed code before it optimises JavaScript.
 */
const shortLifeOptions = ['--liftoff-only', '--interrupt-budget=1000000'];
/** Node options for each gateway and each command that tests and benches start. */
export const nodeOptions: readonly string[] = isTest
  ? shortLifeOptions
  : (start.match(/--\S+/g) ?? []);
const startVariables: Readonly<Record<string, string>> = isTest
  ? {}
  : Object.fromEntries(
      [...start.matchAll(/(MALLOC_\w+)=(\d+)/g)].map(([, name = '', value = '']) => [name, value]),
    );
/**
 * Each gateway under test has its own ports, so that late packets from an ended call can't reach
 * another gateway's call. Tests have at most sixty concurrent calls, some with two legs. In a bench
 * the gateway is alone and uses the default ports.
 */
const testMediaPorts = 300;
/** Starts can be slow if the machine is busy with ten other things. */
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
  /** Returns what the process has written so far. */
  output(): string;
  kill(): Promise<void>;
  /** Sends SIGTERM and returns the exit code. */
  terminate(): Promise<number | null>;
};

export async function makeDataDir(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'offhook-gateway-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/**
 * `variables` override the free ports and the quiet logs. `app` is omitted in the embedded profile,
 * because the gateway then creates the dev app.
 */
export async function startGateway(
  dataDir: string,
  variables: Readonly<Record<string, string>> = {},
  app?: DevApp,
  /** The folder of another build. Default: `dist`. */
  build = dist,
): Promise<GatewayProcess> {
  const hasOwnPorts = !isTest || 'MEDIA_PORT_MIN' in variables;
  const media = hasOwnPorts ? undefined : await freePortRange(testMediaPorts);
  const child = spawn(process.execPath, [...nodeOptions, join(build, 'main.js')], {
    env: {
      PATH: process.env['PATH'],
      ...startVariables,
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

/**
 * Waits for the process's runtime file. We compare the pid because the file of an earlier process
 * may still be around.
 */
async function untilUp(
  child: ChildProcess,
  dataDir: string,
  output: () => string,
): Promise<RuntimeFile> {
  const runtimes: RuntimeFile[] = [];
  const isUp = async (): Promise<boolean> => {
    if (child.exitCode !== null) {
      throw new Error(`the gateway ended (${child.exitCode}):\n${output()}`);
    }
    const runtime = await readFile(join(dataDir, 'runtime.json'), 'utf8')
      .then((text) => JSON.parse(text) as RuntimeFile)
      .catch(() => undefined);
    if (runtime?.pid === child.pid && runtime !== undefined) runtimes.push(runtime);
    return runtimes.length > 0;
  };
  try {
    await eventually(isUp, () => `the gateway is up; it wrote:\n${output()}`, startTimeoutMs);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return runtimes[0] as RuntimeFile;
}
