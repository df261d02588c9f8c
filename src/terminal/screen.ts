// What the gateway says to the person who started it, beside its log and in order with it. Where it is no terminal the
// log is all there is, and stays what programs read: lines of JSON.

import { type Logger, writeLine } from '../lib/logger.ts';
import { type BannerFacts, bannerLines } from './banner.ts';
import { type CallWatcher, createCallWatcher } from './call-lines.ts';
import { forcedLine, type Stopping, stoppingLine } from './stop-lines.ts';

export type Screen = {
  /** Undefined: calls are not shown. */
  readonly watcher: CallWatcher | undefined;
  starting(version: string): void;
  /** Whether `up` writes anything: false for a log, and for a quiet terminal. */
  readonly showsBanner: boolean;
  up(facts: BannerFacts): void;
  stopping(signal: NodeJS.Signals, state: Stopping): void;
  forced(signal: NodeJS.Signals): void;
};

export type ScreenOptions = {
  readonly logger: Logger;
  /** LOG_CALLS. */
  readonly logCalls: boolean | undefined;
};

export function createTerminalScreen({ logger, logCalls }: ScreenOptions): Screen {
  const write = (line: string): void => writeLine(logger, line);
  // Who asked for a quiet log wants a quiet terminal.
  const isQuiet = !logger.isLevelEnabled('info');
  const watcher = createCallWatcher(({ callId, text }) =>
    write(`[${new Date().toISOString().slice(11, 23)}] ${callId.slice(0, 13)}  ${text}`),
  );
  return {
    watcher: (logCalls ?? !isQuiet) ? watcher : undefined,
    showsBanner: !isQuiet,
    starting: (version) => {
      if (!isQuiet)
        write(`Offhook ${version} is starting; the first time takes some seconds longer.`);
    },
    up: (facts) => {
      if (!isQuiet) for (const line of bannerLines(facts)) write(line);
    },
    // After the ^C that the terminal shows.
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
        ? logger.info({ signal }, 'ending when the start is done')
        : logger.info({ signal, calls: count, drainMs }, 'finishing calls'),
    forced: (signal) => logger.info({ signal }, 'ending at once'),
  };
}
