// What the feature of a command says of it: the line that is noted, and how a call obeys it.

import type { Command, CommandOf, CommandReply } from '../contract/command.ts';
import type { MemberError } from '../contract/schema.ts';
import type { LiveCall } from './call-registry.ts';

export type CommandHandler<Name extends Command['command'], Ports = unknown> = {
  /** For those who look into the call. Headers and query strings, which may be secrets, are left out. */
  note(command: CommandOf<Name>): string;
  /** Refuses the command, or sends its event to the machine. All but a hang-up need an answered call. */
  obey(command: CommandOf<Name>, asked: Asked<Ports>): CommandReply | Promise<CommandReply>;
};

export type Asked<Ports> = {
  readonly live: LiveCall;
  /** Events that come of the command name it. */
  readonly commandId: string;
  readonly ports: Ports;
};

export type Refusal = Extract<CommandReply, { readonly ok: false }>;

/** The state forbids it. */
export function refusedBy(state: string, { command }: Command): Refusal {
  const error = `The call is ${state}; ${command} needs one that is answered.`;
  return { ok: false, code: 'state', error };
}

export const callHasEnded: Refusal = { ok: false, code: 'ended', error: 'The call has ended.' };

/** Members that are wrong, or that this call cannot have. */
export function invalidCommand(errors: readonly MemberError[]): Refusal {
  const error = errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return { ok: false, code: 'invalid', error, errors };
}
