// Prints messages for the person who started the gateway, in order with the log. If the output
// isn't a terminal, only the log is printed, as lines of JSON for programs.

import { type Logger, writeLine } from '../lib/logger.ts';
import { type BannerFacts, bannerLines } from './banner.ts';
import { type CallWatcher, createCallWatcher } from './call-lines.ts';
import { forcedLine, type Stopping, stoppingLine } from './stop-lines.ts';

export type Screen = {
  /** Undefined if calls aren't shown. */
  readonly watcher: CallWatcher | undefined;
  starting(version: string): void;
  /** True if `up` prints a banner. False if the output is a log or the terminal is quiet. */
  readonly showsBanner: boolean;
  up(facts: BannerFacts): void;
  stopping(signal: NodeJS.Signals, state: Stopping): void;
  forced(signal: NodeJS.Signals): void;
};

export type ScreenOptions = {
  readonly logger: Logger;
  /** LOG_CALLS. Default: calls are shown in a terminal unless it's quiet. */
  readonly logCalls: boolean | undefined;
};

export function createTerminalScreen({ logger, logCalls }: ScreenOptions): Screen {
  const write = (line: string): void => writeLine(logger, line);
  // A quiet log level also makes the terminal quiet.
  const isQuiet = !logger.isLevelEnabled('info');
  const watcher = createCallWatcher(({ callId, text }) =>
    write(`[${new Date().toISOString().slice(11, 23)}] ${callId.slice(0, 13)}  ${text}`),
  );
  return {
    watcher: (logCalls ?? !isQuiet) ? watcher : undefined,
    showsBanner: !isQuiet,
    starting: (version) => {
      if (!isQuiet)
        write(`Offhook ${version} is starting; the first start takes a few seconds longer.`);
    },
    up: (facts) => {
      if (!isQuiet) for (const line of bannerLines(facts)) write(line);
    },
    // The line break ends the line on which the terminal shows ^C.
    stopping: (_signal, state) => write(`\n${stoppingLine(state)}`),
    forced: () => write(`\n${forcedLine}`),
  };
}

export function createLogScreen({ logger, logCalls }: ScreenOptions): Screen {
  const calls = logger.child({}, { level: 'info' });
  return {
    watcher:
      logCalls === true
        ? createCallWatcher(({ callId, text }) => calls.info({ callId }, text))
        : undefined,
    starting: () => undefined,
    showsBanner: false,
    up: () => undefined,
    stopping: (signal, { starting, calls: count, drainMs }) =>
      starting
        ? logger.info({ signal }, 'ending after the start')
        : logger.info({ signal, calls: count, drainMs }, 'finishing calls'),
    forced: (signal) => logger.info({ signal }, 'ending at once'),
  };
}
