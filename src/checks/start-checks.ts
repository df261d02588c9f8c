// What a start makes sure of before it opens anything, so that what is wrong is said at once, all of it, and by its name.

import type { Config } from '../config.ts';
import type { Logger } from '../lib/logger.ts';
import { type Check, type CheckResult, runChecks, startTimeoutMs } from './check.ts';
import { speechToTextCheck, trunksCheck } from './configured-files.ts';
import { dataFolderCheck, diskCheck } from './data-folder.ts';
import { clockCheck, databaseCheck } from './database.ts';
import { drachtioCheck } from './drachtio.ts';
import { natsCheck, natsServerCheck } from './nats.ts';
import { portsCheck } from './ports.ts';

/** @throws Error with a line for each mistake in the files that the configuration names. */
export async function checkConfiguredFiles(config: Config): Promise<void> {
  throwFailures(await runChecks(fileChecksOf(config), startTimeoutMs));
}

/** @throws Error that names DATA_DIR, which is made where it is missing. */
export async function checkDataFolder(config: Config): Promise<void> {
  const check = dataFolderCheck(config.dataDir, { keep: true });
  throwFailures(await runChecks([check], startTimeoutMs));
}

/** @throws Error with a line for each failure. What the start waits for is a warning. */
export async function checkBeforeStart(config: Config, logger: Logger): Promise<void> {
  const results = await runChecks(checksOf(config), startTimeoutMs);
  const awaited = results.filter((result) => result.isAwaited && result.state === 'failed');
  const warnings = results.filter(({ state }) => state === 'warning');
  for (const { name, detail } of [...awaited, ...warnings]) {
    logger.warn({ check: name, detail }, 'a check before the start found something');
  }
  throwFailures(results.filter((result) => !result.isAwaited));
}

export function fileChecksOf(config: Config): readonly Check[] {
  return [trunksCheck(config), speechToTextCheck(config)];
}

/**
 * Every other check but that of the data folder. `running`: the gateway that runs here, which has
 * the ports.
 */
export function checksOf(
  config: Config,
  running?: { readonly natsUrl?: string | undefined },
): readonly Check[] {
  const embedded = config.databaseUrl === undefined || config.nats.url === undefined;
  return [
    diskCheck(config.dataDir, { embedded }),
    portsCheck(config, running !== undefined),
    natsServerCheck(config),
    natsCheck(config, running?.natsUrl),
    drachtioCheck(config),
    databaseCheck(config),
    clockCheck(config),
  ];
}

function throwFailures(results: readonly CheckResult[]): void {
  const failures = results.filter(({ state }) => state === 'failed');
  if (failures.length === 0) return;
  throw new Error(failures.map(({ detail }) => detail).join('\n  '));
}
