// Unless NATS_URL is set, runs a private nats-server with JetStream as a child process. It's the
// real server, so bots can connect to it too. We restart the server if it dies, and stop it when
// the gateway exits. If an earlier gateway was killed and its server is still running, we stop that
// server first, because two servers must never open the same store.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../lib/logger.ts';
import { endLeftBehind } from './left-behind.ts';
import {
  loadIdentity,
  moveToFreePort,
  type NatsFiles,
  type NatsIdentity,
  natsFiles,
  natsUrl,
  writeConfiguration,
} from './nats-identity.ts';
import { followOutput, readTail } from './nats-output.ts';
import { probeNats } from './nats-probe.ts';
import { findNatsServer } from './nats-program.ts';

/** This is generous, because it takes seconds to read a store with millions of messages. */
const readyTimeoutMs = 30_000;
const probeTimeoutMs = 1_000;
const probeIntervalMs = 25;
/** If the server is still running this long after SIGTERM, we send SIGKILL. */
const stopTimeoutMs = 5_000;
const firstRestartDelayMs = 100;
const maxRestartDelayMs = 5_000;
/** The restart back-off is reset once the server has run for this long. */
const steadyMs = 10_000;
/** An error message quotes this many of the server's last output lines. */
const keptLines = 5;

export type NatsServerOptions = {
  readonly dataDir: string;
  /** NATS_SERVER_BIN. Default: `nats-server` on `searchPath`. */
  readonly program?: string;
  /** The PATH to search. */
  readonly searchPath: string;
  readonly logger: Logger;
};

export type NatsServerExit = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly restartInMs: number;
};

/**
 * Starts the server. Resolves once it responds.
 *
 * @throws Error that explains how to install a missing program, or why the server couldn't start
 */
export async function startNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const program = await findNatsServer(options.program, options.searchPath);
  const files = natsFiles(options.dataDir);
  let identity = await loadIdentity(files);
  const left = await endLeftBehind(files);
  if (left === 'ended') options.logger.info('ended the nats-server of an earlier process');
  const holder = await probeNats(identity, probeTimeoutMs);
  if (holder === 'private server') {
    throw new Error(
      `A nats-server of this data folder already runs on port ${identity.port}, but its process id is unknown; end that server first`,
    );
  }
  if (holder === 'another program') identity = await moveToFreePort(files, identity);
  await writeConfiguration(files, identity);
  const server = new NatsServer(program, files, identity, options.logger);
  await server.start();
  return server;
}

export class NatsServer implements AsyncDisposable {
  readonly url: string;
  readonly #program: string;
  readonly #files: NatsFiles;
  readonly #identity: NatsIdentity;
  readonly #logger: Logger;
  readonly #exitListeners: ((exit: NatsServerExit) => void)[] = [];
  readonly #killOnExit = () => this.#child?.kill('SIGKILL');
  #child: ChildProcess | undefined;
  #startError: string | undefined;
  #startedAt = 0;
  #restartDelayMs = firstRestartDelayMs;
  #stopFollowing: (() => void) | undefined;
  #restartTimer: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(program: string, files: NatsFiles, identity: NatsIdentity, logger: Logger) {
    this.#program = program;
    this.#files = files;
    this.#identity = identity;
    this.#logger = logger;
    this.url = natsUrl(identity);
  }

  /**
   * Process id of the running child. Undefined after the child has died and until we've restarted
   * it.
   */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Calls `listener` if the server dies without `stop()`. We restart the server in any case. */
  onExit(listener: (exit: NatsServerExit) => void): void {
    this.#exitListeners.push(listener);
  }

  async start(): Promise<void> {
    // If the gateway exits without `stop()` (an uncaught error, process.exit), kill the server.
    process.once('exit', this.#killOnExit);
    this.#launch();
    try {
      await this.#ready();
    } catch (error) {
      await this.stop();
      throw error;
    }
    this.#logger.info({ pid: this.pid, port: this.#identity.port }, 'nats-server ready');
  }

  /** Sends SIGTERM, and later SIGKILL if the server hasn't exited by then. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    const child = this.#child;
    if (child === undefined || hasEnded(child)) return this.#cleanUp();
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    await ended;
    clearTimeout(killer);
    this.#cleanUp();
  }

  /**
   * Removes the exit handler. Don't call this until the server has ended. Otherwise, if the gateway
   * exits during a slow stop, the server would keep running.
   */
  #cleanUp(): void {
    process.removeListener('exit', this.#killOnExit);
    this.#stopFollowing?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #launch(): void {
    this.#startedAt = performance.now();
    // The output goes to a file, not a pipe. If the server outlived us, writing to a broken pipe
    // would kill it before it could close its store. The server writes so little that it's enough
    // to truncate the file at each start.
    const output = openSync(this.#files.output, 'w', 0o600);
    const child = spawn(this.#program, ['--config', this.#files.configuration], {
      stdio: ['ignore', 'ignore', output],
      // The server needs its own process group. Ctrl-C in a terminal goes to the whole foreground
      // group, but while calls are draining we still have to publish their events.
      detached: true,
    });
    closeSync(output);
    this.#stopFollowing?.();
    this.#stopFollowing = followOutput(this.#files.output, this.#logger);
    this.#child = child;
    child.once('error', (error) => {
      this.#startError = error.message;
      // If the program couldn't be started, there won't be an `exit` event.
      if (child.pid === undefined) this.#onChildExit(child, null, null);
    });
    child.once('exit', (code, signal) => this.#onChildExit(child, code, signal));
  }

  #lastLines(): readonly string[] {
    const lines = readTail(this.#files.output)
      .split('\n')
      .filter((line) => line !== '');
    return [...(this.#startError === undefined ? [] : [this.#startError]), ...lines].slice(
      -keptLines,
    );
  }

  #onChildExit(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#stopping || this.#child !== child) return;
    this.#child = undefined;
    if (performance.now() - this.#startedAt > steadyMs) this.#restartDelayMs = firstRestartDelayMs;
    const restartInMs = this.#restartDelayMs;
    this.#restartDelayMs = Math.min(restartInMs * 2, maxRestartDelayMs);
    this.#logger.error(
      { code, signal, restartInMs, lastLines: this.#lastLines() },
      'nats-server died',
    );
    this.#restartTimer = setTimeout(() => this.#launch(), restartInMs);
    for (const listener of this.#exitListeners) listener({ code, signal, restartInMs });
  }

  async #ready(): Promise<void> {
    const deadline = performance.now() + readyTimeoutMs;
    while (performance.now() < deadline) {
      if ((await probeNats(this.#identity, probeTimeoutMs)) === 'private server') return;
      // If the server dies during the first start, fail right away. The cause must be the
      // configuration or the store, and a retry would only hide that.
      if (this.#child === undefined || hasEnded(this.#child)) break;
      await pause(probeIntervalMs);
    }
    throw new Error(`nats-server does not start: ${this.#lastLines().join(' | ') || 'no output'}`);
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}
