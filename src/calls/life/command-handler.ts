// Each feature implements this interface for each of its commands. It consists of a note for the
// console, and the execution.

import type { Command, CommandOf, CommandReply } from '../contract/command.ts';
import type { MemberError } from '../contract/schema.ts';
import type { LiveCall } from './call-registry.ts';

export type CommandHandler<Name extends Command['command'], Ports = unknown> = {
  /**
   * Returns the note for the call's capture. It must not contain headers or query strings, which
   * may be secret, or digits that are hidden.
   */
  note(command: CommandOf<Name>, live: Pick<LiveCall, 'hidesKeys'>): string;
  /**
   * Rejects the command, or sends its event to the machine. Only called for an answered call,
   * except in the case of `hangup`.
   */
  execute(
    command: CommandOf<Name>,
    context: CommandContext<Ports>,
  ): CommandReply | Promise<CommandReply>;
};

export type CommandContext<Ports> = {
  readonly live: LiveCall;
  /** The command's id, which is carried by every event that results from the command. */
  readonly commandId: string;
  readonly ports: Ports;
};

export type Refusal = Extract<CommandReply, { readonly ok: false }>;

/** The refusal for a command that isn't allowed in the call's current state. */
export function refusedBy(state: string, { command }: Command): Refusal {
  const error = `The call is ${state}; ${command} needs an answered call.`;
  return { ok: false, code: 'state', error };
}

export const callHasEnded: Refusal = { ok: false, code: 'ended', error: 'The call has ended.' };

/** The refusal for a command with fields that are invalid, or impossible for this call. */
export function invalidCommand(errors: readonly MemberError[]): Refusal {
  const error = errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return { ok: false, code: 'invalid', error, errors };
}
