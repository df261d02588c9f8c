// Commands of bots on `<prefix>.command.<callId>`, request and reply: `{"command":"hangup"}` → `{"ok":true}`.

import type { Msg } from '@nats-io/transport-node';
import {
  type Command,
  type CommandReply,
  commandReply,
  commandSchema,
} from '../calls/contract/command.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { commandSubject } from './subjects.ts';

/** Undefined: this process does not know the call; another node may, so nothing is replied. */
export type CommandHandler = (
  callId: string,
  command: Command,
) => Promise<CommandReply | undefined>;

/** Commands are short; what is longer is none. */
const maxBodyBytes = 4_096;

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

/** Longer than the owner needs to find a call that it is just starting. */
const commandTimeoutMs = 2_000;

/** Sends a command to whichever node has the call. Undefined: no answer came in time, or NATS is unreachable. */
export async function sendCommand(
  connection: EventConnection,
  callId: string,
  command: Command,
): Promise<CommandReply | undefined> {
  const subject = commandSubject(connection.prefix, callId);
  try {
    const reply = await connection.nats.request(subject, JSON.stringify(command), {
      timeout: commandTimeoutMs,
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
      command === undefined
        ? { ok: false, error: 'the body must be {"command":"hangup"}' }
        : await handler(callId, command);
    if (reply !== undefined) message.respond(JSON.stringify(reply));
  } catch (error) {
    logger.error({ err: error, callId }, 'command failed');
    respondFailure(message);
  }
}

function respondFailure(message: Msg): void {
  try {
    message.respond(JSON.stringify({ ok: false, error: 'internal error' }));
  } catch {
    // The connection is closed: the requester sees its own time-out.
  }
}

function parseCommand(message: Msg): Command | undefined {
  if (message.data.length > maxBodyBytes) return undefined;
  try {
    return commandSchema.safeParse(message.json<unknown>()).data;
  } catch {
    return undefined;
  }
}
