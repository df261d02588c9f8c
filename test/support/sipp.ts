// Runs sipp with one of our scenario files as the far end of a call: a SIP implementation that is none of ours. A run is
// bounded in calls and in time, its logs live in a temporary folder, and nothing of it survives `stop`.

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
  /** A file of test/fixtures/sipp, without its ending. */
  readonly scenario: string;
  /** UDP unless told otherwise. */
  readonly transport?: SippTransport;
  /** sipp exits by itself after so many calls; one unless told otherwise. */
  readonly calls?: number;
  /** The length of the scenario's pauses. */
  readonly pauseMs?: number;
  /** The `load` scenario hangs up itself when no BYE came by then. */
  readonly hangUpAfterMs?: number;
  /** Where the scenario's SDP says that its audio is; by default a port where sipp listens to nothing. */
  readonly media?: { readonly host: string; readonly port: number };
  /** What stands in the scenario for `[status]` and the like; sipp's own -key cannot make a start line. */
  readonly keys?: Readonly<Record<string, string>>;
  /** Place calls to this address instead of waiting for them. */
  readonly callTo?: { readonly host: string; readonly port: number };
  /**
   * sipp repeats itself over UDP, and takes a message that comes twice for a repetition, which it answers by repeating
   * itself: two that both do so never stop. False where the scenario does its own repeating.
   */
  readonly repeats?: boolean;
  /** Its caller runs on a patient clock, and never repeats what was answered. Another process may have stood still. */
  readonly patientCaller?: boolean;
  /** Keeping every message is for tests, not for load. */
  readonly keepMessages?: boolean;
  /** The whole run may take so long, then sipp exits with a failure. */
  readonly timeoutMs?: number;
};

export type { SippMessage } from './sipp-log.ts';

export type SippExit = {
  /** 0: every call went as the scenario says. `undefined`: it was stopped. */
  readonly code: number | undefined;
  /** What sipp complained about. */
  readonly errors: string;
};

export type Sipp = AsyncDisposable & {
  readonly host: string;
  readonly port: number;
  /** The URI to dial; over TCP it says so. */
  uri(user?: string): string;
  readonly exited: Promise<SippExit>;
  /** Everything that sipp has sent and received; complete once it has exited. */
  messages(): Promise<readonly SippMessage[]>;
  /** Ends the process if need be and removes its files. Harmless when repeated. */
  stop(): Promise<void>;
};

/** Of the package sip-tester. */
const PROGRAM = 'sipp';
const HOST = '127.0.0.1';
const SCENARIOS = new URL('../fixtures/sipp/', import.meta.url);
const SCENARIO_FILE = 'scenario.xml';
/** Shorter than a test's time, so that sipp says itself what it waited for. */
const DEFAULT_TIMEOUT_MS = 50_000;
/** sipp has been told a port that was free a moment ago; another process may have been quicker, or our own look whether it listens. */
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

/** One listener for all of them. */
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

  // A test that ran out of time disposes of nothing, and its process ends.
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
  // On the awaited BYE alone: sipp's own -recv_timeout would give up an ACK that is late, too.
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
    // An ACK that comes twice is no reason to give a call up; whatever else is not in the scenario is among its errors.
    ...['-default_behaviors', 'all,-abortunexp'],
    // It would complain of every half second that the machine stood still.
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

/** A caller need not be waited for. A callee listens as soon as its port can no longer be bound. */
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

/** Binds for a moment. */
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
