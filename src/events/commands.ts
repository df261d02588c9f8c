// Serves and sends commands for calls. A command is a request on `<prefix>.command.<callId>`, such
// as `{"command":"hangup"}`, which gets the reply `{"ok":true}`.

import { headers, type Msg } from '@nats-io/transport-node';
import {
  type Command,
  type CommandReply,
  commandReply,
  type ReadCommand,
  readCommand,
} from '../calls/contract/command.ts';
import type { MemberError } from '../calls/contract/schema.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { commandSubject } from './subjects.ts';

/**
 * Executes a command.
 *
 * @returns undefined if this process doesn't own the call. We then don't reply, because the owner
 *   will.
 */
export type AnswerCommand = (
  callId: string,
  command: Command,
  askedBy: string,
) => Promise<CommandReply | undefined>;

/**
 * When a node forwards a command, this header names the original sender. We can't verify the name,
 * because any program with the NATS password can write anything here.
 */
const askedByHeader = 'Offhook-Asked-By';
const maxAskedByLength = 100;

/**
 * We reject larger commands. The largest valid command contains fifty bot parameters with 1,024
 * characters each.
 */
const maxBodyBytes = 256 * 1_024;

export function serveCommands(
  connection: EventConnection,
  handler: AnswerCommand,
  logger: Logger,
): { stop(): void } {
  return connection.subscribe(`${connection.prefix}.command.*`, {
    callback: (error, message) => {
      if (error !== null) {
        logger.warn({ err: error }, 'the subscription for commands failed');
        return;
      }
      inBackground(answer(message, handler, logger), logger, 'serving a command');
    },
  });
}

type Refusal = Extract<CommandReply, { readonly ok: false }>;

/** Limits the length of `error`, which joins all the fields' errors. */
const maxErrorLength = 1_000;
/**
 * Maximum number of errors, which is also the number of fields in the largest command. We truncate
 * paths and messages, because a field's name can be as long as the body.
 */
const maxErrors = 50;
const maxMemberLength = 200;

/** Longer than the owner needs to find a call that it is about to start. */
const commandTimeoutMs = 2_000;

/**
 * Sends a command to the node that owns the call.
 *
 * @returns undefined if no valid reply arrived in time, or if NATS is unreachable
 */
export async function sendCommand(
  connection: EventConnection,
  callId: string,
  command: Command,
  askedBy?: string,
): Promise<CommandReply | undefined> {
  const subject = commandSubject(connection.prefix, callId);
  const named = headers();
  if (askedBy !== undefined) named.set(askedByHeader, askedBy);
  try {
    const reply = await connection.nats.request(subject, JSON.stringify(command), {
      timeout: commandTimeoutMs,
      headers: named,
    });
    return commandReply.parse(reply.json<unknown>());
  } catch {
    return undefined;
  }
}

async function answer(message: Msg, handler: AnswerCommand, logger: Logger): Promise<void> {
  const callId = message.subject.slice(message.subject.lastIndexOf('.') + 1);
  try {
    const parsed = parseCommand(message);
    const reply = parsed.ok
      ? withIgnored(await handler(callId, parsed.command, askedByOf(message)), parsed.ignored)
      : parsed;
    if (reply !== undefined) message.respond(JSON.stringify(reply));
  } catch (error) {
    logger.error({ err: error, callId }, 'a command failed');
    respondFailure(message);
  }
}

function withIgnored(
  reply: CommandReply | undefined,
  ignored: readonly string[],
): CommandReply | undefined {
  return reply?.ok === true && ignored.length > 0 ? { ...reply, ignored } : reply;
}

function askedByOf(message: Msg): string {
  const name = message.headers?.get(askedByHeader) ?? '';
  return name === '' ? 'NATS' : name.slice(0, maxAskedByLength);
}

function respondFailure(message: Msg): void {
  const refusal: Refusal = { ok: false, code: 'internal', error: 'internal error' };
  try {
    message.respond(JSON.stringify(refusal));
  } catch {
    // The connection has been closed, so the requester will time out.
  }
}

function parseCommand(message: Msg): Extract<ReadCommand, { readonly ok: true }> | Refusal {
  if (message.data.length > maxBodyBytes) {
    return { ok: false, code: 'invalid', error: `the body is larger than ${maxBodyBytes} bytes` };
  }
  let body: unknown;
  try {
    body = message.json<unknown>();
  } catch {
    const error = 'the body is not JSON; {"command":"hangup"} is a command';
    return { ok: false, code: 'invalid', error };
  }
  const read = readCommand(body);
  return read.ok ? read : wrongMembers(read.errors);
}

function wrongMembers(all: readonly MemberError[]): Refusal {
  const errors = all.slice(0, maxErrors).map(({ path, message }) => ({
    path: path.slice(0, maxMemberLength),
    message: message.slice(0, maxMemberLength),
  }));
  const error = errors.map(({ path, message }) => `${path || 'the body'}: ${message}`).join('; ');
  return { ok: false, code: 'invalid', error: error.slice(0, maxErrorLength), errors };
}
