// The process: configuration, application, signals. SIGTERM and SIGINT let running calls finish up to a bound; a second
// signal ends them at once. SIGHUP reads the trunks again.

import { startApp } from './app.ts';
import { loadConfig } from './config.ts';
import { errorForPeople } from './lib/error-for-log.ts';
import { createLogger } from './lib/logger.ts';

/** From a signal during the start to the end, whatever the start waits for: well below the 10 s of `docker stop`. */
const startPatienceMs = 5_000;

async function main(): Promise<void> {
  const config = loadConfig();
  const logger = createLogger({
    level: config.logLevel,
    nodeId: config.nodeId,
    pretty: process.stdout.isTTY,
  });
  const stopping = new AbortController();
  const forced = new AbortController();
  let starting = true;
  const onSignal = (signal: NodeJS.Signals): void => {
    const again = stopping.signal.aborted;
    logger.info({ signal }, words(starting, again));
    (again ? forced : stopping).abort();
    // A start that waits for a database would outlast the patience of whoever asked us to stop.
    setTimeout(() => starting && process.exit(1), again ? 0 : startPatienceMs).unref();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);

  // A terminal that is closed sends SIGHUP as well: there it ends the process, as it always did.
  let reload = async (): Promise<void> => undefined;
  let reloading = Promise.resolve();
  if (!process.stdout.isTTY) {
    process.on('SIGHUP', () => {
      reloading = reloading.then(() => reload());
    });
  }

  const app = await startApp(config, { logger, onFatal: () => process.exit(1) });
  starting = false;
  reload = () => app.reload();
  if (!stopping.signal.aborted) {
    await new Promise((resolve) =>
      stopping.signal.addEventListener('abort', resolve, { once: true }),
    );
  }
  const { shutdownDelayMs: delayMs, shutdownTimeoutMs: drainMs } = config;
  await app.close({ delayMs, drainMs, force: forced.signal });
}

function words(starting: boolean, again: boolean): string {
  if (again) return 'ending at once';
  return starting ? 'ending when the start is done' : 'finishing calls';
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`offhook: ${errorForPeople(error)}\n`);
    process.exit(1);
  },
);
