// Commands while a call is up: the same at both doors, a request on `<prefix>.command.<callId>` and `POST …/commands`.

import { z } from 'zod';
import { describeIssues } from '../../lib/issues.ts';
import { soundReference } from '../playback/sound-reference.ts';
import { streamParameters, streamUrl } from '../stream/stream-members.ts';
import {
  hasAtMostOneReading,
  numberReadingMembers,
  oneReadingOnly,
} from '../target/number-reading.ts';
import { transferMembers, transferTarget } from '../transfer/transfer-members.ts';
import {
  ignoredMembers,
  namesOf,
  nothingUnknown,
  type UnknownMembers,
  unknownMembers,
} from './misspellings.ts';
import type { Immutable } from './schema.ts';

/** As an `Idempotency-Key`. */
export const commandId = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters')
  .describe(
    'names the command within its call, so that it may be repeated; over HTTP the header `Idempotency-Key` says the same',
  );

const id = commandId.exactOptional();

/** By the member `command`. */
const commands = [
  z
    .object({ command: z.literal('hangup'), id })
    .describe('cancels the call or hangs up, in every state of the call'),
  z
    .object({
      command: z.literal('play'),
      id,
      sound: soundReference,
      loop: z.boolean().exactOptional().describe('until it is stopped or something else is played'),
    })
    .describe('plays a sound, after what is queued already'),
  z
    .object({ command: z.literal('stop'), id })
    .describe('what is queued is not played, of sounds and of the bot; no more keys are pressed'),
  z
    .object({
      command: z.literal('dtmf'),
      id,
      digits: z
        .string()
        .regex(/^[0-9A-D*#w]{1,64}$/, 'must be 1 to 64 of 0-9 A-D * # and w')
        .describe('in this order; `w` waits for 500 ms'),
      durationMs: z
        .number()
        .int()
        .min(40)
        .max(5_000)
        .exactOptional()
        .describe('of each key; left out: 100'),
    })
    .describe(
      'presses keys, behind those that are being pressed: as RTP events (RFC 4733), or as SIP INFO where the trunk says so',
    ),
  z
    .object({
      command: z.literal('stream'),
      id,
      url: streamUrl
        .nullable()
        .describe(
          'ws or wss URL of a bot, whose query string is in no event and no log; null: the call has no bot any more, which is no hang-up',
        ),
      parameters: streamParameters.exactOptional(),
    })
    .describe('has a bot take the audio, in place of the one that has it; 50 in a call'),
  z
    .object({
      command: z.literal('transfer'),
      id,
      to: transferTarget,
      ...transferMembers,
      ...numberReadingMembers,
    })
    .refine(hasAtMostOneReading, { path: ['bareNumbers'], message: oneReadingOnly })
    .describe('connects the person to an agent; one at a time, 20 in a call'),
] as const;

export const commandSchema = z.discriminatedUnion('command', commands);
export type Command = Immutable<z.infer<typeof commandSchema>>;
export type CommandOf<Name extends Command['command']> = Extract<
  Command,
  { readonly command: Name }
>;

type MemberError = UnknownMembers['errors'][number];

export type ReadCommand =
  | { readonly ok: true; readonly command: Command; readonly ignored: readonly string[] }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** The same at both doors. @param body of any kind */
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

/** A hang-up is never refused for a member that it does not know. */
function unknownMembersOf(body: unknown): UnknownMembers {
  const { command: name } = (body ?? {}) as { readonly command?: unknown };
  const command = commands.find(({ shape }) => shape.command.value === name);
  if (command === undefined) return nothingUnknown;
  const { errors, ignored } = unknownMembers(body, namesOf(command.shape));
  if (name !== 'hangup') return { errors, ignored };
  return { errors: [], ignored: [...errors.map(({ path }) => path), ...ignored] };
}

/** Why a command was not taken. */
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

/** What an answer says beside, where there is something to say. */
export const commandRemarks = {
  to: z
    .string()
    .exactOptional()
    .describe('the number as it is dialled; only if `to` of a transfer was written without `+`'),
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
      .describe('of `invalid`: the members that are wrong, or that this call cannot have'),
  }),
]);
export type CommandReply = Immutable<z.infer<typeof commandReply>>;
