// Implements `offhook doctor`, which checks everything that a gateway needs here.

import { type Check, type CheckResult, failed, ok, runChecks, skipped } from '../checks/check.ts';
import { dataFolderCheck } from '../checks/data-folder.ts';
import { receiverCheck } from '../checks/receiver.ts';
import { checksOf, fileChecksOf } from '../checks/start-checks.ts';
import type { CliContext, RunningGateway } from './cli-context.ts';
import { CliError } from './cli-error.ts';

export type DoctorOptions = { readonly notify?: string; readonly json?: boolean };

/**
 * Runs all checks and prints their results. Receivers may have public addresses, or addresses in
 * `allowedNetworks`.
 *
 * @throws CliError if a check fails
 */
export async function examine(
  context: CliContext,
  allowedNetworks: readonly string[],
  options: DoctorOptions,
): Promise<void> {
  const { config } = context;
  const running = await context.gateway();
  const results = await runChecks([
    gatewayCheck(running),
    dataFolderCheck(config.dataDir, { keep: false }),
    ...fileChecksOf(config),
    ...checksOf(config, running),
    receiverCheck(options.notify, allowedNetworks),
  ]);
  for (const result of results)
    context.print(options.json === true ? asJson(result) : asLine(result));
  const failures = results.filter(({ state }) => state === 'failed').length;
  if (failures > 0) throw new CliError(`${failures} of ${results.length} checks failed`);
}

function gatewayCheck(running: RunningGateway | undefined): Check {
  const run = async () => {
    if (running === undefined)
      return skipped('no gateway runs under this DATA_DIR; start one with: npm start');
    const response = await fetch(`${running.httpUrl}/ready`);
    const { reasons } = (await response.json()) as { readonly reasons?: readonly string[] };
    const where = `runs on ${running.httpUrl}`;
    return reasons === undefined ? ok(where) : failed(`${where}, but ${reasons.join(', ')}`);
  };
  return { name: 'gateway', run };
}

const marks = { ok: 'ok', warning: 'WARNING', failed: 'FAILED', skipped: '-' } as const;

function asLine({ name, state, detail }: CheckResult): string {
  return `${marks[state].padEnd(7)}  ${name.padEnd(14)}  ${detail}`;
}

function asJson({ name, state, detail }: CheckResult): string {
  return JSON.stringify({ check: name, state, detail });
}
