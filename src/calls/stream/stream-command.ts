// The command `stream`, which begins or ends a stream. The command is checked first, which takes
// time. The stream then changes only if the state of the call still allows it. The query of the
// URL, which may be secret, is encrypted before it reaches the call.

import type { AcceptedCall } from '../call-types.ts';
import type { CommandOf } from '../contract/command.ts';
import type { AppLookup } from '../dialout-ports.ts';
import type { CallRegistry } from '../life/call-registry.ts';
import { type CommandHandler, callHasEnded, type Refusal } from '../life/command-handler.ts';
import type { RequestedStream } from './stream.ts';
import { withoutQuery } from './stream-members.ts';
import { type BotAddresses, notReachable } from './stream-request.ts';

export type StreamingPorts = {
  readonly registry: Pick<CallRegistry, 'live'>;
  readonly apps: AppLookup;
  readonly streams: BotAddresses;
};

type StartCommand = CommandOf<'stream'> & { readonly url: string };

type CheckedStream =
  | { readonly ok: true; readonly stream: RequestedStream }
  | { readonly ok: false; readonly refusal: Refusal };

export const streamHandler: CommandHandler<'stream', StreamingPorts> = {
  note: ({ url }) => (url === null ? 'end the stream' : `stream to ${withoutQuery(url)}`),
  async execute(command, { live: { call }, commandId, ports }) {
    const checked = startsStream(command) ? await check(ports, call, command) : undefined;
    if (checked?.ok === false) return checked.refusal;
    // The call may have ended during the check.
    const live = ports.registry.live(call.callId);
    if (live === undefined) return callHasEnded;
    const { state, streamObstacles } = live;
    const obstacle = checked === undefined ? streamObstacles.toEnd : streamObstacles.toBegin;
    const error = state === 'answered' ? obstacle : `The call is ${state}.`;
    if (error !== undefined) return { ok: false, code: 'state', error };
    const stream = checked === undefined ? {} : { stream: checked.stream };
    live.send({ type: 'command.stream', commandId, ...stream });
    return { ok: true, commandId, state };
  },
};

function startsStream(command: CommandOf<'stream'>): command is StartCommand {
  return command.url !== null;
}

/**
 * Checks the address of the bot, and that the app that placed the call (not the app that sent the
 * command) still exists.
 */
async function check(
  { apps, streams }: StreamingPorts,
  { appId, botId }: AcceptedCall,
  { url, parameters = {} }: StartCommand,
): Promise<CheckedStream> {
  const problems: string[] = [];
  if (!streams.isReachable(new URL(url))) problems.push(notReachable);
  try {
    const app = await apps.find(appId);
    if (app === undefined) problems.push(`the app ${appId} is revoked`);
  } catch {
    // SQL does not answer. Opening the stream reads the app again, and reports a failure if that
    // fails too.
  }
  if (problems.length === 0) {
    return { ok: true, stream: { ...streams.seal(botId, url), connect: 'answered', parameters } };
  }
  const errors = problems.map((message) => ({ path: 'url', message }));
  const error = `url: ${problems.join('; ')}`;
  return { ok: false, refusal: { ok: false, code: 'invalid', error, errors } };
}
