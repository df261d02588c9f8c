// The gateway process: loads the configuration, starts the application and handles signals. SIGTERM
// and SIGINT let running calls finish within a time limit, and a second signal ends the calls right
// away. SIGHUP reloads the trunks, unless the gateway runs on a terminal. There, SIGHUP means that
// the terminal is closing, so we treat it like the other two signals. See app/shutdown.ts for the
// time limits.

import type { App } from './app/app.ts';
import { shutdownLimitMs } from './app/shutdown.ts';
import { type Config, loadConfig } from './config.ts';
import { errorForPeople } from './lib/error-for-log.ts';
import { createLogger } from './lib/logger.ts';
import { boundHeapGrowth, holdYoungGeneration } from './lib/threads/heap-growth.ts';
import type { BannerFacts } from './terminal/banner.ts';
import { createLogScreen, createTerminalScreen, type Screen } from './terminal/screen.ts';
import type { Stopping } from './terminal/stop-lines.ts';
import { version } from './version.ts';

/**
 * If a signal arrives during the start, we kill the process after this time, no matter what the
 * start is waiting for. It's well below the 10 s that `docker stop` allows.
 */
const startPatienceMs = 5_000;

/** Tell a supervisor how the process ended. */
const exitCodes = {
  closed: 0,
  failed: 1,
  /** A part didn't close in time (see the log). `timeout` from coreutils uses the same code. */
  leftBehind: 124,
} as const;

/** Runs the gateway until a signal ends it, and returns the exit code. */
async function main(): Promise<number> {
  const config = loadConfig();
  const releaseYoungGeneration = holdYoungGeneration();
  if (config.databaseUrl !== undefined) boundHeapGrowth();
  const isTerminal = process.stdout.isTTY;
  const { logLevel: level, nodeId, logCalls } = config;
  const logger = createLogger({ level, nodeId, pretty: isTerminal });
  const screen = (isTerminal ? createTerminalScreen : createLogScreen)({ logger, logCalls });
  screen.starting(version);
  const drainMs = isTerminal ? config.terminalShutdownTimeoutMs : config.shutdownTimeoutMs;
  const { shutdownDelayMs: delayMs } = config;
  let app: App | undefined;
  const { stopping, forced } = listenForSignals({
    screen,
    isTerminal,
    state: () => ({
      starting: app === undefined,
      calls: app?.callCount() ?? 0,
      ...{ drainMs, startPatienceMs },
    }),
    boundMs: shutdownLimitMs({ delayMs, drainMs }),
    onBound: () => {
      logger.fatal(
        { parts: app?.unclosed() },
        'the process did not end in time; these parts have not closed and are left behind',
      );
      process.exit(exitCodes.leftBehind);
    },
  });

  let reloading = Promise.resolve();
  if (!isTerminal) {
    process.on('SIGHUP', () => {
      reloading = reloading.then(() => app?.reload());
    });
  }

  // Loading app.ts takes seconds on a slow machine, so we load it after checking the configuration.
  // That way, mistakes are reported right away.
  const { startApp } = await import('./app/app.ts');
  const { watcher } = screen;
  const onFatal = (): never => process.exit(exitCodes.failed);
  app = await startApp(config, {
    // A gateway that nobody calls through needs little memory for new objects.
    ...{ logger, onFatal, onCallStarted: releaseYoungGeneration },
    ...(watcher === undefined ? {} : { watcher }),
  });
  if (!stopping.aborted) {
    // Only the banner on a terminal shows a sign-in link. It must never end up in a log.
    const link = screen.showsBanner ? await app.console.link() : undefined;
    screen.up(bannerFacts(config, app, link));
  }
  if (!stopping.aborted) {
    await new Promise((resolve) => stopping.addEventListener('abort', resolve, { once: true }));
  }
  const leftBehind = await app.close({ delayMs, drainMs, force: forced });
  return leftBehind.length === 0 ? exitCodes.closed : exitCodes.leftBehind;
}

type Signals = {
  readonly screen: Screen;
  readonly isTerminal: boolean;
  readonly state: () => Stopping;
  /** If the process is still running this long after the first signal, we kill it. */
  readonly boundMs: number;
  readonly onBound: () => void;
};

/**
 * Listens for signals. The first signal starts the shutdown with its delay and drain, and the
 * second one skips both.
 */
function listenForSignals({ screen, isTerminal, state, boundMs, onBound }: Signals) {
  const stopping = new AbortController();
  const forced = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    const isSecond = stopping.signal.aborted;
    if (isSecond) screen.forced(signal);
    else screen.stopping(signal, state());
    (isSecond ? forced : stopping).abort();
    setTimeout(onBound, isSecond ? shutdownLimitMs() : boundMs).unref();
    // The start may be waiting for a database, possibly for longer than a supervisor is prepared to
    // wait.
    setTimeout(
      () => state().starting && process.exit(exitCodes.failed),
      isSecond ? 0 : startPatienceMs,
    ).unref();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  if (isTerminal) {
    process.on('SIGHUP', onSignal);
    // After the terminal has closed, writes fail, but that mustn't end the process early.
    for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
  }
  return { stopping: stopping.signal, forced: forced.signal };
}

function bannerFacts(
  { databaseUrl, dataDir }: Config,
  { runtime, console: { address } }: App,
  link: string | undefined,
): BannerFacts {
  return {
    version,
    httpUrl: runtime.httpUrl,
    dataDir,
    workingFolder: process.cwd(),
    hasDevApp: databaseUrl === undefined,
    hasSandbox: runtime.sandboxUri !== undefined,
    console: { address, ...(link === undefined ? {} : { link }) },
  };
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`offhook: ${errorForPeople(error)}\n`);
    process.exit(exitCodes.failed);
  },
);
