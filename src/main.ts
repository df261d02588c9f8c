// The process: configuration, application, signals. SIGTERM and SIGINT let running calls finish up to a bound; a second
// signal ends them at once.

import { startApp } from './app.ts';
import { loadConfig } from './config.ts';
import { createLogger } from './lib/logger.ts';

async function main(): Promise<void> {
  const config = loadConfig();
  const logger = createLogger({
    level: config.logLevel,
    nodeId: config.nodeId,
    pretty: process.stdout.isTTY,
  });
  const stopping = new AbortController();
  const forced = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    logger.info({ signal }, stopping.signal.aborted ? 'ending at once' : 'finishing calls');
    (stopping.signal.aborted ? forced : stopping).abort();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);

  const app = await startApp(config, { logger, onFatal: () => process.exit(1) });
  if (!stopping.signal.aborted) {
    await new Promise((resolve) =>
      stopping.signal.addEventListener('abort', resolve, { once: true }),
    );
  }
  await app.close({ drainMs: config.shutdownTimeoutMs, force: forced.signal });
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    const cause =
      error instanceof Error && error.cause instanceof Error ? `\n  ${error.cause.message}` : '';
    process.stderr.write(`offhook: ${text}${cause}\n`);
    process.exit(1);
  },
);
