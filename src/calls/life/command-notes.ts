// A command as those see it who look into its call: what, by whom, and what came of it.

import { assertNever } from '../call-types.ts';
import type { CallNote } from '../capture/capture.ts';
import type { Command, CommandReply } from '../contract/command.ts';
import type { CallId } from '../contract/identity.ts';
import { publicNameOf } from '../playback/sound-reference.ts';
import { withoutQuery } from '../stream/stream-members.ts';

/** Where commands are noted. */
export type NoteCommand = (callId: CallId, note: CallNote) => void;

/** `askedBy`: left out by who does not say. */
export async function notedCommand(
  note: (note: CallNote) => void,
  { command, commandId, askedBy = 'unknown' }: Asked,
  reply: Promise<CommandReply>,
): Promise<CommandReply> {
  const at = Date.now();
  const begunMs = performance.now();
  const answer = await reply;
  note({
    ...{ kind: 'command', at, what: describeCommand(command), by: askedBy, commandId },
    tookMs: Math.round(performance.now() - begunMs),
    ...(answer.ok ? {} : { refusal: answer.error }),
  });
  return answer;
}

type Asked = {
  readonly command: Command;
  readonly commandId: string;
  readonly askedBy: string | undefined;
};

/** Without headers and query strings, which may be secrets. */
export function describeCommand(command: Command): string {
  switch (command.command) {
    case 'play':
      return `play ${publicNameOf(command.sound)}${command.loop === true ? ', again and again' : ''}`;
    case 'dtmf':
      return `dtmf ${command.digits}`;
    case 'transfer':
      return `transfer to ${command.to} (${command.mode})`;
    case 'stream':
      return command.url === null ? 'stream to no bot' : `stream to ${withoutQuery(command.url)}`;
    case 'stop':
    case 'hangup':
      return command.command;
    default:
      return assertNever(command);
  }
}
