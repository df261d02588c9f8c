// Commands of bots on `<prefix>.command.<callId>`, request and reply: `{"command":"hangup"}` → `{"ok":true}`.

import { headers, type Msg } from '@nats-io/transport-node';
import {
  type Command,
  type CommandReply,
  commandReply,
  commandSchema,
  misspelledMembers,
} from '../calls/contract/command.ts';
import { describeIssues } from '../lib/issues.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { commandSubject } from './subjects.ts';

/** Undefined: this process does not know the call; another node may, so nothing is replied. */
export type CommandHandler = (
  callId: string,
  command: Command,
  askedBy: string,
) => Promise<CommandReply | undefined>;

/** Who asked, where a node passes a command on. A program that has the password of NATS may say anything here. */
const askedByHeader = 'Offhook-Asked-By';
const longestAskedBy = 100;

/** The longest has fifty parameters for a bot, of 1,024 characters each. What is longer is none. */
const maxBodyBytes = 256 * 1_024;

export function serveCommands(
  connection: EventConnection,
  handler: CommandHandler,
  logger: Logger,
): { stop(): void } {
  const subscription = connection.nats.subscribe(`${connection.prefix}.command.*`, {
    callback: (error, message) => {
      if (error !== null) {
        logger.warn({ err: error }, 'command subscription failed');
        return;
      }
      void answer(message, handler, logger);
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

const maxErrorLength = 1_000;

/** Longer than the owner needs to find a call that it is just starting. */
const commandTimeoutMs = 2_000;

/** Sends a command to whichever node has the call. Undefined: no answer came in time, or NATS is unreachable. */
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

async function answer(message: Msg, handler: CommandHandler, logger: Logger): Promise<void> {
  const callId = message.subject.slice(message.subject.lastIndexOf('.') + 1);
  try {
    const command = parseCommand(message);
    const reply: CommandReply | undefined =
      typeof command === 'string'
        ? { ok: false, error: command }
        : await handler(callId, command, askedByOf(message));
    if (reply !== undefined) message.respond(JSON.stringify(reply));
  } catch (error) {
    logger.error({ err: error, callId }, 'command failed');
    respondFailure(message);
  }
}

function askedByOf(message: Msg): string {
  const name = message.headers?.get(askedByHeader) ?? '';
  return name === '' ? 'NATS' : name.slice(0, longestAskedBy);
}

function respondFailure(message: Msg): void {
  try {
    message.respond(JSON.stringify({ ok: false, error: 'internal error' }));
  } catch {
    // The connection is closed: the requester sees its own time-out.
  }
}

/** A text says what is wrong with it. */
function parseCommand(message: Msg): Command | string {
  if (message.data.length > maxBodyBytes) return `the body is larger than ${maxBodyBytes} bytes`;
  let body: unknown;
  try {
    body = message.json<unknown>();
  } catch {
    return 'the body is not JSON; {"command":"hangup"} is a command';
  }
  const misspelled = misspelledMembers(body);
  const parsed = commandSchema.safeParse(body, { error: describeIssues });
  if (parsed.success && misspelled.length === 0) return parsed.data;
  const problems = [
    ...misspelled.map(({ path, message: problem }) => `${path}: ${problem}`),
    ...(parsed.error?.issues ?? []).map(
      ({ path, message: problem }) => `${path.join('.') || 'the body'}: ${problem}`,
    ),
  ];
  return problems.join('; ').slice(0, maxErrorLength);
}
