// The `transfer` command. Because checking the command takes time, the transfer only starts if the
// call's state still allows it afterwards.

import type { AcceptedCall } from '../call-types.ts';
import type { CommandOf } from '../contract/command.ts';
import type { AppLookup, CallingApp, RoutePlanner } from '../dialout-ports.ts';
import type { CallRegistry } from '../life/call-registry.ts';
import {
  type CommandHandler,
  callHasEnded,
  invalidCommand,
  type Refusal,
} from '../life/command-handler.ts';
import { mayDial } from '../target/app-limits.ts';
import { type TargetResult, uriOfTarget } from '../target/dial-target.ts';
import { readingFor } from '../target/number-reading.ts';
import { isBareNumber, parseTarget } from '../target/parse-target.ts';
import type { TransferRequest } from './transfer.ts';
import { resolveTransfer } from './transfer-request.ts';

export type TransferringPorts = {
  readonly registry: Pick<CallRegistry, 'live'>;
  readonly routes: RoutePlanner;
  readonly apps: AppLookup;
};

type CheckedTransfer =
  | { readonly ok: true; readonly transfer: TransferRequest }
  | { readonly ok: false; readonly refusal: Refusal };

export const transferHandler: CommandHandler<'transfer', TransferringPorts> = {
  note: ({ to, mode }) => `transfer to ${to} (${mode})`,
  async execute(command, { live: { call }, commandId, ports }) {
    const checked = await check(ports, call, command);
    if (!checked.ok) return checked.refusal;
    // In the meantime, the call may have ended or another transfer may have started.
    const live = ports.registry.live(call.callId);
    if (live === undefined) return callHasEnded;
    const { state, transferObstacle } = live;
    const obstacle = state === 'answered' ? transferObstacle : `The call is ${state}.`;
    if (obstacle !== undefined) return { ok: false, code: 'state', error: obstacle };
    live.send({ type: 'command.transfer', commandId, transfer: checked.transfer });
    const dialled = isBareNumber(command.to) ? { to: uriOfTarget(checked.transfer.to) } : {};
    return { ok: true, commandId, state, ...dialled };
  },
};

/**
 * Checks the command against the call's trunk, and against the limits of the app that placed the
 * call. Note that another app may have sent the command.
 */
async function check(
  { routes, apps }: TransferringPorts,
  { appId, accountId, request: { caller, callerName, trunk } }: AcceptedCall,
  command: CommandOf<'transfer'>,
): Promise<CheckedTransfer> {
  // If the database isn't responding, accept the command anyway. The app limits are read again for
  // the second leg, which isn't placed until they are known.
  const app = await apps.find(appId).catch(() => 'in-doubt' as const);
  const target = targetOf(command, app);
  if (target === 'in-doubt') return { ok: false, refusal: inDoubt };
  if (!target.ok) return invalid([{ path: 'to', message: target.message }]);
  const callOfTransfer = { caller, callerName, trunk, accountId, routes };
  const resolved = resolveTransfer({ ...command, to: target.target }, callOfTransfer);
  if (!resolved.ok) return invalid(resolved.errors);
  if (app === 'in-doubt' || (app !== undefined && mayDial(app.limits, target.target))) {
    return resolved;
  }
  return { ok: false, refusal: forbidden };
}

/**
 * Parses the target.
 *
 * @returns `in-doubt` if the number has no `+` and we would need the app's settings to read it, but
 * couldn't look them up
 */
function targetOf(
  command: CommandOf<'transfer'>,
  app: CallingApp | 'in-doubt' | undefined,
): TargetResult | 'in-doubt' {
  const reading = readingFor(command, typeof app === 'object' ? app : {});
  const dependsOnApp = isBareNumber(command.to) && Object.keys(reading).length === 0;
  return app === 'in-doubt' && dependsOnApp ? 'in-doubt' : parseTarget(command.to, reading);
}

function invalid(errors: Parameters<typeof invalidCommand>[0]): CheckedTransfer {
  return { ok: false, refusal: invalidCommand(errors) };
}

const inDoubt: Refusal = {
  ok: false,
  code: 'internal',
  error:
    'How the app reads a number without + cannot be looked up right now. Write the number with +.',
};

const forbidden: Refusal = {
  ok: false,
  code: 'forbidden',
  error: 'The app may not dial this number.',
};
