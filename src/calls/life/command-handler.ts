// The interface that the feature of a command implements: a note for the console, and the execution
// of the command.

import type { Command, CommandOf, CommandReply } from '../contract/command.ts';
import type { MemberError } from '../contract/schema.ts';
import type { LiveCall } from './call-registry.ts';

export type CommandHandler<Name extends Command['command'], Ports = unknown> = {
  /**
   * Returns the note for the capture of the call, without headers and query strings, which may be
   * secret.
   */
  note(command: CommandOf<Name>): string;
  /**
   * Refuses the command, or sends its event to the machine. Except for `hangup`, this is only
   * called for an answered call.
   */
  execute(
    command: CommandOf<Name>,
    context: CommandContext<Ports>,
  ): CommandReply | Promise<CommandReply>;
};

export type CommandContext<Ports> = {
  readonly live: LiveCall;
  /** The id of the command. Events that result from the command carry it. */
  readonly commandId: string;
  readonly ports: Ports;
};

export type Refusal = Extract<CommandReply, { readonly ok: false }>;

/** Builds the refusal of a command that the call's state does not allow. */
export function refusedBy(state: string, { command }: Command): Refusal {
  const error = `The call is ${state}; ${command} needs an answered call.`;
  return { ok: false, code: 'state', error };
}

export const callHasEnded: Refusal = { ok: false, code: 'ended', error: 'The call has ended.' };

/** Builds the refusal of a command with members that are invalid, or not possible for this call. */
export function invalidCommand(errors: readonly MemberError[]): Refusal {
  const error = errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return { ok: false, code: 'invalid', error, errors };
}
