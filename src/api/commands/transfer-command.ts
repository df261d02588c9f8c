// A transfer by command, judged where its call is: what its members come to with the call's trunk, and whether the app that placed
// the call may dial there, through whichever door the command came.

import { type AppLimits, mayDial } from '../../calls/app-limits.ts';
import type { JudgedTransfer, TransferringPorts } from '../../calls/commands/call-transferring.ts';
import type { CommandOf } from '../../calls/contract/command.ts';
import type { RoutePlanner } from '../../calls/dialout-ports.ts';
import { parseTarget } from '../../calls/parse-target.ts';
import type { MemberError } from '../../http/problem.ts';
import type { AppDirectory } from '../../store/apps/app-directory.ts';
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
    const { to: text, ...members } = command;
    const target = parseTarget(text);
    if (!target.ok) return invalid([{ path: 'to', message: target.message }]);
    const ofCall = { caller, trunk, accountId, routes };
    const resolved = resolveTransfer({ ...members, to: target.target }, ofCall);
    if (!resolved.ok) return invalid(resolved.errors);
    try {
      const app = await apps.find(appId);
      if (app === undefined || !mayDial(app.limits, target.target)) return forbidden;
    } catch {
      // SQL does not answer. The second leg asks again before it is placed, until it knows.
    }
    return resolved;
  };
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

const forbidden: JudgedTransfer = {
  ok: false,
  refusal: { ok: false, code: 'forbidden', error: 'The app may not dial this number.' },
};
