// Runs sipp with one of our scenario files as the far end of a call, so that we also test against a
// SIP implementation that we didn't write. A run is limited in calls and time. Its logs go to a
// temporary folder, which `stop` removes.

import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeUdpPort } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';
import { parseMessages, type SippMessage, withoutRepetitions } from './sipp-log.ts';

export type SippTransport = 'udp' | 'tcp';

export type SippOptions = {
  /** A file of test/fixtures/sipp, without its extension. */
  readonly scenario: string;
  /** Default: UDP. */
  readonly transport?: SippTransport;
  /** Number of calls after which sipp exits. Default: 1. */
  readonly calls?: number;
  /** Length of the scenario's pauses. Default: 100. */
  readonly pauseMs?: number;
  /** Time after which the `load` scenario hangs up if no BYE came. Default: never. */
  readonly hangUpAfterMs?: number;
  /**
   * Address of the audio in the scenario's SDP. Default: a port of sipp at which it receives
   * nothing.
   */
  readonly media?: { readonly host: string; readonly port: number };
  /**
   * Replacements for `[status]` and similar keys in the scenario. sipp's own -key cannot produce a
   * start line.
   */
  readonly keys?: Readonly<Record<string, string>>;
  /** Address to which sipp places calls. Default: sipp waits for calls. */
  readonly callTo?: { readonly host: string; readonly port: number };
  /**
   * Whether sipp retransmits over UDP. sipp answers a retransmission by repeating its own last
   * message, so two sides that both do this never stop. Use false if the scenario does its own
   * retransmissions. Default: true.
   */
  readonly repeats?: boolean;
  /**
   * Whether the caller runs on a patient clock and so never retransmits a request that was
   * answered. A caller in another process may have stood still. Default: false.
   */
  readonly patientCaller?: boolean;
  /** Whether sipp logs every message: for tests, not for load. Default: true. */
  readonly keepMessages?: boolean;
  /** Time limit of the whole run. After it sipp exits with a failure. Default: 50,000. */
  readonly timeoutMs?: number;
};

export type { SippMessage } from './sipp-log.ts';

export type SippExit = {
  /** 0 if every call followed the scenario. Undefined if sipp was stopped. */
  readonly code: number | undefined;
  /** The complaints of sipp. */
  readonly errors: string;
};

export type Sipp = AsyncDisposable & {
  readonly host: string;
  readonly port: number;
  /** Returns the URI to dial, with `transport=tcp` if sipp uses TCP. */
  uri(user?: string): string;
  readonly exited: Promise<SippExit>;
  /** Returns all messages that sipp has sent and received. Complete after sipp has exited. */
  messages(): Promise<readonly SippMessage[]>;
  /** Ends the process if it still runs, and removes its files. Idempotent. */
  stop(): Promise<void>;
};

/** The program of the package sip-tester. */
const PROGRAM = 'sipp';
const HOST = '127.0.0.1';
const SCENARIOS = new URL('../fixtures/sipp/', import.meta.url);
const SCENARIO_FILE = 'scenario.xml';
/** Shorter than the time limit of a test, so that sipp itself reports what it waited for. */
const DEFAULT_TIMEOUT_MS = 50_000;
/**
 * We give sipp a port that was free a moment ago, but another process may have bound it since. So
 * may our own check for whether sipp is listening.
 */
const MAX_STARTS = 6;
const START_DEADLINE_MS = 30_000;
const POLL_MS = 5;

export async function startSipp(options: SippOptions): Promise<Sipp> {
  let errors = '';
  for (let attempt = 0; attempt < MAX_STARTS; attempt += 1) {
    const run = await launch(options);
    if (await isListening(run, options)) return run.sipp;
    await run.sipp.stop();
    errors = (await run.sipp.exited).errors;
  }
  throw new Error(`sipp did not start with scenario ${options.scenario}: ${errors}`);
}

/** Cleanups of the runs that have not ended. One listener on `exit` serves all of them. */
const leftovers = new Set<() => void>();
process.once('exit', () => {
  for (const remove of leftovers) remove();
});

type Run = { readonly sipp: Sipp; readonly process: ChildProcess };

async function launch(options: SippOptions): Promise<Run> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-sipp-'));
  await writeFile(join(folder, SCENARIO_FILE), await readScenario(options));
  const port = await freeUdpPort();
  const child = spawn(PROGRAM, commandLine(options, port), {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let printed = '';
  child.stderr.on('data', (chunk: Buffer) => {
    printed += chunk.toString('utf8');
  });

  keepLog(() => {
    const state = child.exitCode === null ? '' : `, ended with ${child.exitCode}`;
    return `sipp ${options.scenario} on ${port}${state}\n${printed}`;
  });

  // If a test times out, it doesn't dispose of anything before its process ends.
  const atProcessExit = () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  leftovers.add(atProcessExit);

  let messages: readonly SippMessage[] | undefined;
  const readMessages = async () => messages ?? parseMessages(await readLogs(folder, 'messages'));
  const ended = async (): Promise<SippExit> => {
    try {
      const code = await waitForExit(child);
      const complaints = printed.replace(/^Resolving remote host .*$/gm, '');
      const logged = `${complaints}${await readLogs(folder, 'errors')}`;
      messages = await readMessages();
      const errors = withoutRepetitions(logged, messages, options.patientCaller).trim();
      const isUnexpected = errors.includes('Continuing call on unexpected message');
      return { code: code === 0 && isUnexpected ? 1 : code, errors };
    } finally {
      await rm(folder, { recursive: true, force: true });
      leftovers.delete(atProcessExit);
    }
  };
  const exited = ended();
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  const suffix = options.transport === 'tcp' ? ';transport=tcp' : '';
  const sipp: Sipp = {
    host: HOST,
    port,
    uri: (user = 'callee') => `sip:${user}@${HOST}:${port}${suffix}`,
    exited,
    messages: readMessages,
    stop,
    [Symbol.asyncDispose]: stop,
  };
  return { sipp, process: child };
}

async function readScenario(options: SippOptions): Promise<string> {
  const template = await readFile(new URL(`${options.scenario}.xml`, SCENARIOS), 'utf8');
  // The time-out applies only to the awaited BYE. sipp's own -recv_timeout would also give up if an
  // ACK is late.
  const { hangUpAfterMs } = options;
  const hangUp = hangUpAfterMs === undefined ? '' : `timeout="${hangUpAfterMs}"`;
  const defaults = { hang_up_timeout: hangUp, until_answer: '<pause/>' };
  return Object.entries({ ...defaults, ...options.keys }).reduce(
    (text, [key, value]) => text.replaceAll(`[${key}]`, value),
    template,
  );
}

function commandLine(options: SippOptions, port: number): string[] {
  const { media, callTo, repeats = true, keepMessages = true } = options;
  const timeoutS = Math.ceil((options.timeoutMs ?? DEFAULT_TIMEOUT_MS) / 1000);
  return [
    ...(callTo === undefined ? [] : [`${callTo.host}:${callTo.port}`]),
    ...['-sf', SCENARIO_FILE],
    ...['-t', options.transport === 'tcp' ? 't1' : 'u1', '-i', HOST, '-bind_local'],
    ...['-p', String(port), '-nostdin', '-m', String(options.calls ?? 1)],
    ...['-timeout', `${timeoutS}s`, '-timeout_error', '-trace_err'],
    // A second ACK must not end a call. sipp lists everything else outside the scenario among its
    // errors.
    ...['-default_behaviors', 'all,-abortunexp'],
    // Without this, sipp would complain whenever the machine stands still for half a second.
    ...['-watchdog_interval', '0'],
    ...['-d', String(options.pauseMs ?? 100)],
    ...(media === undefined ? [] : ['-mi', media.host, '-mp', String(media.port)]),
    ...(repeats ? [] : ['-nr']),
    ...(keepMessages ? ['-trace_msg'] : []),
  ];
}

function waitForExit(child: ChildProcess): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => resolve(code ?? undefined));
    child.on('error', (cause) => {
      reject(new Error('sipp cannot be started; is sip-tester installed?', { cause }));
    });
  });
}

/**
 * Waits until sipp is ready. A sipp that places calls is ready immediately. A callee listens when
 * its port can no longer be bound.
 * @returns false if sipp exits or does not listen in time
 */
async function isListening({ sipp, process }: Run, options: SippOptions): Promise<boolean> {
  const deadline = performance.now() + START_DEADLINE_MS;
  while (process.exitCode === null && performance.now() < deadline) {
    if (process.pid === undefined) await sipp.exited;
    if (options.callTo !== undefined) return true;
    if (!(await isFree(options.transport ?? 'udp', sipp.port))) return process.exitCode === null;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return false;
}

/** Whether the port is free: binds it for a moment. */
async function isFree(transport: SippTransport, port: number): Promise<boolean> {
  const socket = transport === 'udp' ? createSocket('udp4') : createServer();
  try {
    const listening = once(socket, 'listening');
    if ('bind' in socket) socket.bind({ port, address: HOST, exclusive: true });
    else socket.listen({ port, host: HOST, exclusive: true });
    await listening;
    return true;
  } catch {
    return false;
  } finally {
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
      try {
        socket.close();
      } catch {
        resolve();
      }
    });
  }
}

async function readLogs(folder: string, kind: 'messages' | 'errors'): Promise<string> {
  const names = await readdir(folder).catch(() => []);
  const logs = names.filter((name) => name.endsWith(`_${kind}.log`)).sort();
  const texts = await Promise.all(logs.map((name) => readFile(join(folder, name), 'utf8')));
  return texts.join('');
}
