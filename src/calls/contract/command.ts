// Commands to a live call. NATS (a request on `<prefix>.command.<callId>`) and HTTP (`POST
// …/commands`) accept the same commands. Each feature defines its own.

import { z } from 'zod';
import { describeIssues } from '../../lib/issues.ts';
import { dtmfCommand } from '../keys/key-contract.ts';
import { hangupCommand } from '../life/call-contract.ts';
import { optOutCommand } from '../opt-out/opt-out-contract.ts';
import { playCommand, stopCommand } from '../playback/playback-contract.ts';
import { recordCommand } from '../recording/recording-contract.ts';
import { streamCommand } from '../stream/stream-contract.ts';
import { transferCommand } from '../transfer/transfer-contract.ts';
import {
  ignoredMembers,
  namesOf,
  nothingUnknown,
  type UnknownMembers,
  unknownMembers,
} from './misspellings.ts';
import type { Immutable, MemberError } from './schema.ts';

/** The schemas of all commands, told apart by their `command` field. */
const commands = [
  hangupCommand,
  playCommand,
  stopCommand,
  dtmfCommand,
  streamCommand,
  transferCommand,
  recordCommand,
  optOutCommand,
] as const;

export const commandSchema = z.discriminatedUnion('command', commands);
export type Command = Immutable<z.infer<typeof commandSchema>>;
export type CommandOf<Name extends Command['command']> = Extract<
  Command,
  { readonly command: Name }
>;

export type ReadCommand =
  | { readonly ok: true; readonly command: Command; readonly ignored: readonly string[] }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** Parses a command received over HTTP or NATS. `body` may be anything. */
export function readCommand(body: unknown): ReadCommand {
  const unknown = unknownMembersOf(body);
  const parsed = commandSchema.safeParse(body, { error: describeIssues });
  if (parsed.success && unknown.errors.length === 0) {
    return { ok: true, command: parsed.data, ignored: unknown.ignored };
  }
  const issues = (parsed.error?.issues ?? []).map(({ path, message }) => ({
    path: path.join('.'),
    message,
  }));
  return { ok: false, errors: [...unknown.errors, ...issues] };
}

/**
 * Finds fields that aren't in the command's schema. A hang-up is always accepted, even if a field
 * looks misspelled.
 */
function unknownMembersOf(body: unknown): UnknownMembers {
  const { command: name } = (body ?? {}) as { readonly command?: unknown };
  const command = commands.find(({ shape }) => shape.command.value === name);
  if (command === undefined) return nothingUnknown;
  const { errors, ignored } = unknownMembers(body, namesOf(command.shape));
  if (name !== 'hangup') return { errors, ignored };
  return { errors: [], ignored: [...errors.map(({ path }) => path), ...ignored] };
}

/** Why a command was rejected. */
export const commandRefusals = [
  'id-used',
  'ended',
  'state',
  'sound',
  'digits',
  'invalid',
  'forbidden',
  'internal',
] as const;

/** Optional fields of a reply. A field is omitted if it doesn't apply. */
export const commandRemarks = {
  to: z
    .string()
    .exactOptional()
    .describe('the dialled number; only if `to` of a transfer was written without `+`'),
  ignored: ignoredMembers.exactOptional(),
};

const memberErrors = z.array(z.object({ path: z.string(), message: z.string() }));

export const commandReply = z.union([
  z.object({
    ok: z.literal(true),
    commandId: z.string().exactOptional(),
    state: z.string().exactOptional(),
    ...commandRemarks,
  }),
  z.object({
    ok: z.literal(false),
    error: z.string(),
    code: z.enum(commandRefusals).exactOptional(),
    errors: memberErrors
      .exactOptional()
      .describe('with `invalid`: the fields that are wrong or not possible for this call'),
  }),
]);
export type CommandReply = Immutable<z.infer<typeof commandReply>>;
