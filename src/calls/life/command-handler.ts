// What the feature of a command defines: the note that the console shows, and how a call carries
// out the command.

import type { Command, CommandOf, CommandReply } from '../contract/command.ts';
import type { MemberError } from '../contract/schema.ts';
import type { LiveCall } from './call-registry.ts';

export type CommandHandler<Name extends Command['command'], Ports = unknown> = {
  /**
   * The note in the capture of the call. It leaves out headers and query strings, which may be
   * secrets.
   */
  note(command: CommandOf<Name>): string;
  /**
   * Refuses the command, or sends its event to the machine. Every command but `hangup` needs an
   * answered call.
   */
  execute(
    command: CommandOf<Name>,
    context: CommandContext<Ports>,
  ): CommandReply | Promise<CommandReply>;
};

export type CommandContext<Ports> = {
  readonly live: LiveCall;
  /** The id of the command. The events that result from the command carry it. */
  readonly commandId: string;
  readonly ports: Ports;
};

export type Refusal = Extract<CommandReply, { readonly ok: false }>;

/** Refuses a command that the state of the call does not allow. */
export function refusedBy(state: string, { command }: Command): Refusal {
  const error = `The call is ${state}; ${command} needs an answered call.`;
  return { ok: false, code: 'state', error };
}

export const callHasEnded: Refusal = { ok: false, code: 'ended', error: 'The call has ended.' };

/** Refuses a command because members of it are wrong, or are not possible for this call. */
export function invalidCommand(errors: readonly MemberError[]): Refusal {
  const error = errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return { ok: false, code: 'invalid', error, errors };
}
