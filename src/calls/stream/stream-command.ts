// The `stream` command, which starts or ends a stream. Checking the command takes time, so the
// stream only changes if the call's state still allows it afterwards. The URL's query string may be
// secret, so it's encrypted before it reaches the call.

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
 * Checks the bot's address, and that the app that placed the call still exists. Note that this
 * isn't necessarily the app that sent the command.
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
    // The database isn't responding. The app is read again when the stream opens, and if that fails
    // too, the stream reports a failure.
  }
  if (problems.length === 0) {
    return { ok: true, stream: { ...streams.seal(botId, url), connect: 'answered', parameters } };
  }
  const errors = problems.map((message) => ({ path: 'url', message }));
  const error = `url: ${problems.join('; ')}`;
  return { ok: false, refusal: { ok: false, code: 'invalid', error, errors } };
}
