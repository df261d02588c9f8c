// Implements `offhook bots`.

import type { RecordingChoice } from '../calls/recording/recording-request.ts';
import type { StreamConnect } from '../calls/stream/stream.ts';
import { openAdminAccess } from './app-session.ts';
import { noteDevBotCredentials } from './bot-credentials.ts';
import { readRecording } from './calls/dial-options.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';

export type AddBotOptions = {
  readonly account: string;
  /** The bot's alias in requests. */
  readonly stream?: string;
  readonly icon?: string;
  /** False if `--no-stream-url` is given. */
  readonly streamUrl?: string | false;
  readonly streamConnect?: StreamConnect;
  /** JSON. False if `--no-recording` is given. */
  readonly recording?: string | false;
};

export async function addBot(
  context: CliContext,
  botId: string,
  options: AddBotOptions,
): Promise<void> {
  const { account, stream: streamId, icon } = options;
  const stream = streamChange(options);
  // The operation checks it.
  const recording = readRecording(options.recording) as RecordingChoice | undefined;
  await using access = await openAdminAccess(context);
  const bot = await access.run('bots.add', {
    botId,
    accountId: account,
    ...(streamId === undefined ? {} : { streamId }),
    ...(icon === undefined ? {} : { iconUrl: icon }),
    ...(stream === undefined ? {} : { stream }),
    ...(recording === undefined ? {} : { recording }),
  });
  if (stream !== undefined && stream !== null) await noteDevBotCredentials(context);
  context.print(JSON.stringify(bot));
}

/**
 * Returns the change to the bot's audio stream.
 *
 * @returns undefined if the stream stays unchanged, null to remove it
 */
function streamChange({ streamUrl: url, streamConnect: connect }: AddBotOptions) {
  if (url === false) {
    if (connect === undefined) return null;
    throw new CliError('--stream-connect cannot be combined with --no-stream-url.');
  }
  if (url === undefined && connect === undefined) return undefined;
  return {
    ...(url === undefined ? {} : { url }),
    ...(connect === undefined ? {} : { connect }),
  };
}

/** Prints one JSON object per line. */
export async function listBots(context: CliContext): Promise<void> {
  await using access = await openAdminAccess(context);
  for (const bot of (await access.run('bots.list', {})).bots) context.print(JSON.stringify(bot));
}
