// Implements `offhook doctor`, which checks everything that a gateway needs here.

import {
  type Check,
  type CheckResult,
  failed,
  ok,
  runChecks,
  skipped,
  warning,
} from '../checks/check.ts';
import { dataFolderCheck } from '../checks/data-folder.ts';
import { receiverCheck } from '../checks/receiver.ts';
import { checksOf, fileChecksOf } from '../checks/start-checks.ts';
import { isFine, type PublicServer } from '../servers/server-line.ts';
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
    const { reasons, servers = [] } = (await response.json()) as Readiness;
    const troubled = servers.filter((server) => !isFine(server));
    const lines = [`runs on ${running.httpUrl}`, ...troubled.map(lineOf)];
    if (reasons !== undefined) lines[0] += `, but ${reasons.join(', ')}`;
    const finding = lines.join('. ');
    if (reasons !== undefined) return failed(finding);
    return troubled.length === 0 ? ok(finding) : warning(finding);
  };
  return { name: 'gateway', run };
}

/** The part of the response of `/ready` that we print. */
type Readiness = {
  readonly reasons?: readonly string[];
  readonly servers?: readonly PublicServer[];
};

function lineOf({ name, state, since, affects = '' }: PublicServer): string {
  return `${name} is ${state} since ${since}. ${affects}`.replace(/\.? *$/, '');
}

const marks = { ok: 'ok', warning: 'WARNING', failed: 'FAILED', skipped: '-' } as const;

function asLine({ name, state, detail }: CheckResult): string {
  return `${marks[state].padEnd(7)}  ${name.padEnd(14)}  ${detail}`;
}

function asJson({ name, state, detail }: CheckResult): string {
  return JSON.stringify({ check: name, state, detail });
}
