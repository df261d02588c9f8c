// A transfer by command, judged where its call is: what its members come to with the call's trunk, and whether the app that placed
// the call may dial there, through whichever door the command came.

import type { CommandOf } from '../../calls/contract/command.ts';
import type { RoutePlanner } from '../../calls/dialout-ports.ts';
import { type AppLimits, mayDial } from '../../calls/target/app-limits.ts';
import { type TargetResult, uriOfTarget } from '../../calls/target/dial-target.ts';
import { readingFor } from '../../calls/target/number-reading.ts';
import { isBareNumber, parseTarget } from '../../calls/target/parse-target.ts';
import type { JudgedTransfer, TransferringPorts } from '../../calls/transfer/transfer-command.ts';
import { invalidRequest, type MemberError } from '../../http/problem.ts';
import type { App, AppDirectory } from '../../store/apps/app-directory.ts';
import { resolveTransfer } from '../dialout/transfer-request.ts';

export type TransferJudgePorts = {
  readonly routes: RoutePlanner;
  readonly apps: Pick<AppDirectory, 'find'>;
};

export function createTransferJudge({
  routes,
  apps,
}: TransferJudgePorts): TransferringPorts['judgeTransfer'] {
  return async ({ appId, accountId, request: { caller, trunk } }, command) => {
    // SQL may not answer. The second leg asks for the limits again, and is placed when it knows them.
    const app = await apps.find(appId).catch(() => 'in-doubt' as const);
    const target = targetOf(command, app);
    if (target === 'in-doubt') return inDoubt;
    if (!target.ok) return invalid([{ path: 'to', message: target.message }]);
    const ofCall = { caller, trunk, accountId, routes };
    const resolved = resolveTransfer({ ...command, to: target.target }, ofCall);
    if (!resolved.ok) return invalid(resolved.errors);
    if (app === 'in-doubt') return resolved;
    return app !== undefined && mayDial(app.limits, target.target) ? resolved : forbidden;
  };
}

/** `in-doubt`: the app may read this number, which has no `+`, as another one. */
function targetOf(
  command: CommandOf<'transfer'>,
  app: App | 'in-doubt' | undefined,
): TargetResult | 'in-doubt' {
  const reading = readingFor(command, typeof app === 'object' ? app : {});
  const dependsOnApp = isBareNumber(command.to) && Object.keys(reading).length === 0;
  return app === 'in-doubt' && dependsOnApp ? 'in-doubt' : parseTarget(command.to, reading);
}

/**
 * Writes the number of a transfer with its `+`, by the settings of the app that asks: its limits
 * judge the number next.
 *
 * @returns `to` only if the number was written without `+`
 * @throws ProblemError if the number cannot be read
 */
export function withGlobalNumber<Transfer extends CommandOf<'transfer'>>(
  transfer: Transfer,
  app: Pick<App, 'defaultCountry' | 'bareNumbers'>,
): { readonly transfer: Transfer; readonly to?: string } {
  if (!isBareNumber(transfer.to)) return { transfer };
  const result = parseTarget(transfer.to, readingFor(transfer, app));
  if (!result.ok) throw invalidRequest([{ path: 'to', message: result.message }]);
  const to = uriOfTarget(result.target);
  return { transfer: { ...transfer, to }, to };
}

/** Whether an app may have it begun at all: limits of who asks, beside those of the call. */
export function mayAskFor(limits: AppLimits | undefined, { to }: CommandOf<'transfer'>): boolean {
  const target = parseTarget(to);
  return target.ok && mayDial(limits, target.target);
}

function invalid(errors: readonly MemberError[]): JudgedTransfer {
  const error = errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return { ok: false, refusal: { ok: false, code: 'invalid', error, errors } };
}

const inDoubt: JudgedTransfer = {
  ok: false,
  refusal: {
    ok: false,
    code: 'internal',
    error: 'How the app reads a number without + cannot be looked up just now: write it with +.',
  },
};

const forbidden: JudgedTransfer = {
  ok: false,
  refusal: { ok: false, code: 'forbidden', error: 'The app may not dial this number.' },
};
