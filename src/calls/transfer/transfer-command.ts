// Transfers by command: judged for their call, then begun if nothing has come between.

import type { AcceptedCall } from '../call-types.ts';
import type { CommandOf, CommandReply } from '../contract/command.ts';
import type { CallRegistry } from '../life/call-registry.ts';
import { uriOfTarget } from '../target/dial-target.ts';
import { isBareNumber } from '../target/parse-target.ts';
import type { TransferRequest } from './transfer.ts';

export type JudgedTransfer =
  | { readonly ok: true; readonly transfer: TransferRequest }
  | { readonly ok: false; readonly refusal: Extract<CommandReply, { readonly ok: false }> };

export type TransferringPorts = {
  readonly registry: Pick<CallRegistry, 'live'>;
  /** By the call's trunk, and by the limits of the app that placed it, not of the one that asks. */
  readonly judgeTransfer: (
    call: AcceptedCall,
    command: CommandOf<'transfer'>,
  ) => Promise<JudgedTransfer>;
};

export async function transferByCommand(
  { registry, judgeTransfer }: TransferringPorts,
  call: AcceptedCall,
  command: CommandOf<'transfer'>,
  commandId: string,
): Promise<CommandReply> {
  const judged = await judgeTransfer(call, command);
  if (!judged.ok) return judged.refusal;
  // Meanwhile the call may have ended, or another transfer begun.
  const live = registry.live(call.callId);
  if (live === undefined) return { ok: false, code: 'ended', error: 'The call has ended.' };
  const { state, transferObstacle } = live;
  const obstacle = state === 'answered' ? transferObstacle : `The call is ${state}.`;
  if (obstacle !== undefined) return { ok: false, code: 'state', error: obstacle };
  live.send({ type: 'command.transfer', commandId, transfer: judged.transfer });
  const dialled = isBareNumber(command.to) ? { to: uriOfTarget(judged.transfer.to) } : {};
  return { ok: true, commandId, state, ...dialled };
}
