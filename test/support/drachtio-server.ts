// Runs a real drachtio-server, which tests can kill, freeze and start again on the same ports.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SipEngineAddresses } from '../../src/embedded/drachtio/engine.ts';
import { createCa } from './certificates.ts';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';
import { type KeptProgram, keepProgram } from './kept-program.ts';

export type DrachtioServerOptions = {
  /** The path of the program. */
  readonly binary: string;
  readonly secret: string;
  /** Default for each port: a free one. */
  readonly sipPort?: number | undefined;
  readonly controlPort?: number | undefined;
  /** Whether it has a TLS contact too, with a port and a certificate of its own. */
  readonly hasTls?: boolean;
};

export type DrachtioServer = SipEngineAddresses & {
  kill(): Promise<void>;
  /** Freezes the process until `resume`. */
  stop(): void;
  resume(): void;
  /** Starts the program again after `kill` or its own end. */
  start(): Promise<void>;
  /** Whether the program has ended by itself. */
  hasEnded(): boolean;
  /** Kills the process and removes its files. */
  close(): Promise<void>;
};

const host = '127.0.0.1';
/** The program starts within 50 ms on an idle machine. */
const startsWithinMs = 20_000;
/**
 * The control port opens before the SIP ports do, so only this line of the log says that both are
 * open.
 */
const readyLine = 'Starting sofia event loop';

/** The program doesn't start without a configuration file, even if arguments replace all of it. */
const configuration = `<drachtio>
  <admin port="9022" secret="unused">${host}</admin>
  <sip></sip>
  <cdrs>false</cdrs>
  <logging><console/><sofia-loglevel>3</sofia-loglevel><loglevel>info</loglevel></logging>
</drachtio>
`;

/** @throws Error with the end of the log if the program doesn't start, e.g. without a free port */
export async function startDrachtioServer(options: DrachtioServerOptions): Promise<DrachtioServer> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-drachtio-'));
  const configurationFile = join(folder, 'drachtio.conf.xml');
  await writeFile(configurationFile, configuration);
  const sipPort = options.sipPort || (await freeUdpPort());
  const controlPort = options.controlPort || (await freeUdpPort());
  const args = [
    ...['-f', configurationFile, '--contact', `sip:${host}:${sipPort};transport=udp,tcp`],
    ...['--address', host, '--port', String(controlPort), '--secret', options.secret],
    ...['--loglevel', 'info', '--sofia-loglevel', '3'],
    ...(options.hasTls === true ? await tlsArguments(folder) : []),
  ];
  let starts = 0;
  let program: KeptProgram | undefined;
  let log = '';
  const logFile = () => join(folder, `drachtio-${starts}.log`);
  /** Returns the log of the last start, even after the files are gone. */
  const readLog = (): string => {
    try {
      log = readFileSync(logFile(), 'utf8');
    } catch {}
    return log;
  };
  keepLog(readLog);
  const kill = async (): Promise<void> => {
    await program?.end('KILL');
  };
  const start = async (): Promise<void> => {
    starts += 1;
    const files = { logFile: logFile(), cwd: folder };
    const started = await keepProgram({ program: options.binary, args, ...files });
    program = started;
    const isReady = () => readLog().includes(readyLine) || started.hasEnded();
    await eventually(isReady, 'drachtio-server starts', startsWithinMs);
    // If a SIP port is in use, the program ends with code 0.
    if (!readLog().includes(readyLine)) {
      throw new Error(`drachtio-server did not start: ${log.slice(-1_000)}`);
    }
  };
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => () => {
    if (program !== undefined && !program.hasEnded()) process.kill(program.pid, name);
  };
  const close = async (): Promise<void> => {
    await kill();
    readLog();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...{ sipHost: host, sipPort, controlHost: host, controlPort },
    ...{ kill, start, close, stop: signal('SIGSTOP'), resume: signal('SIGCONT') },
    hasEnded: () => program?.hasEnded() ?? true,
  };
}

async function tlsArguments(folder: string): Promise<readonly string[]> {
  const ca = await createCa(folder, 'drachtio-ca');
  const { cert, key } = await ca.issue('localhost');
  return [
    ...['--contact', `sips:${host}:${await freeUdpPort()};transport=tls`],
    // Without a chain file, it looks for one in its working directory, and ends.
    ...['--cert-file', cert, '--key-file', key, '--chain-file', ca.ca],
  ];
}
