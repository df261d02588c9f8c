// Streams by command. A command over HTTP or NATS is checked for its call. Then the stream begins
// or ends, unless the call has changed meanwhile. What may be secret in the URL is encrypted before
// the call gets it.

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
  note: ({ url }) => (url === null ? 'stream to no bot' : `stream to ${withoutQuery(url)}`),
  async execute(command, { live: { call }, commandId, ports }) {
    const checked = startsStream(command) ? await check(ports, call, command) : undefined;
    if (checked?.ok === false) return checked.refusal;
    // Meanwhile the call may have ended, or moved to another process.
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
 * Checks where the bot is, and the app that placed the call (not the app that sent the command).
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
    // SQL does not answer. Opening the stream reads the app again, and reports a failure if it
    // cannot.
  }
  if (problems.length === 0) {
    return { ok: true, stream: { ...streams.seal(botId, url), connect: 'answered', parameters } };
  }
  const errors = problems.map((message) => ({ path: 'url', message }));
  const error = `url: ${problems.join('; ')}`;
  return { ok: false, refusal: { ok: false, code: 'invalid', error, errors } };
}
