// Registers a bot from the command line: its names, its logo, and the URL that its calls stream
// audio to. We never show the URL's query string, because it may contain a secret.

import { z } from 'zod';
import {
  noSuchKey,
  type RecordingChoice,
  type RegisteredRecording,
  toSettings,
} from '../../calls/recording/recording-request.ts';
import { streamConnect, streamUrl } from '../../calls/stream/stream-members.ts';
import { invalidRequest } from '../../http/problem.ts';
import { plainId } from '../../lib/ids.ts';
import { hostMissing, namesHost } from '../../lib/url-text.ts';
import type { Bot, BotStore } from '../../store/apps/bot-directory.ts';
import { type StreamAddress, sealStreamUrl } from '../../store/apps/stream-addresses.ts';
import type { RecordingKeys } from '../../store/recordings/recording-keys.ts';
import type { SecretBox } from '../../store/secrets.ts';
import { recordingMember } from '../dialout/dialout-schema.ts';

export const newBot = z
  .strictObject({
    botId: plainId,
    accountId: plainId,
    streamId: plainId.optional(),
    iconUrl: z
      .url({ protocol: /^https?$/, error: 'must be an http or https URL', abort: true })
      .max(2_048)
      .refine(namesHost, hostMissing)
      .optional(),
    /** Null removes the stream. If the field is omitted, the stream stays unchanged. */
    stream: z
      .strictObject({ url: streamUrl.optional(), connect: streamConnect.optional() })
      .nullish(),
    /** False removes the default. If the field is omitted, it stays unchanged. */
    recording: z
      .union([z.boolean(), recordingMember.strict()], { error: 'must be an object, true or false' })
      .optional(),
  })
  .refine(({ botId, streamId }) => botId !== streamId, {
    path: ['streamId'],
    message: 'is the id of the bot; omit it',
  });

export type ShownBot = Omit<Bot, 'stream'> & {
  readonly stream?: { readonly url: string; readonly connect: string };
};

type RegistrationStores = {
  readonly bots: BotStore;
  readonly secrets: SecretBox;
  readonly recordingKeys: Pick<RecordingKeys, 'find'>;
};

/** @throws ProblemError if another bot or account already has one of the names */
export async function registerBot(
  { bots, secrets, recordingKeys }: RegistrationStores,
  { streamId, iconUrl, stream: wanted, recording: choice, ...names }: z.output<typeof newBot>,
): Promise<ShownBot> {
  const { botId } = names;
  const seal = (url: string) => sealStreamUrl(secrets, botId, url);
  const stream = wanted && toAddress(wanted, (await bots.find(botId))?.stream, seal);
  const recording = choice === undefined ? undefined : toDefault(choice);
  await requireKey(recordingKeys, names.accountId, recording?.key);
  const added = await bots.add({
    ...names,
    ...(streamId === undefined ? {} : { streamId }),
    ...(iconUrl === undefined ? {} : { iconUrl }),
    ...(stream === undefined ? {} : { stream }),
    ...(recording === undefined ? {} : { recording }),
  });
  if (added.kind === 'refused') throw invalidField('botId', added.message);
  return shownBot(added.bot);
}

/** @returns null if the bot's calls aren't recorded by default */
function toDefault(choice: RecordingChoice): RegisteredRecording | null {
  if (choice === false) return null;
  return choice === true ? {} : toSettings(choice);
}

/** @throws ProblemError if the account has no such key */
async function requireKey(
  keys: Pick<RecordingKeys, 'find'>,
  accountId: string,
  name: string | undefined,
): Promise<void> {
  if (name === undefined || (await keys.find(accountId, name)) !== undefined) return;
  throw invalidField('recording.key', noSuchKey);
}

/** Omitted fields keep their value. */
function toAddress(
  { url, connect }: NonNullable<z.output<typeof newBot>['stream']>,
  before: StreamAddress | undefined,
  seal: (url: string) => Pick<StreamAddress, 'url' | 'sealedQuery'>,
): StreamAddress {
  const address = url === undefined ? before : seal(url);
  if (address === undefined)
    throw invalidField('stream.url', 'is required: the bot has no stream yet');
  const { url: plain, sealedQuery } = address;
  return {
    url: plain,
    ...(sealedQuery === undefined ? {} : { sealedQuery }),
    connect: connect ?? before?.connect ?? 'answered',
  };
}

export function shownBot({ stream, ...bot }: Bot): ShownBot {
  if (stream === undefined) return bot;
  const { url, sealedQuery, connect } = stream;
  return { ...bot, stream: { url: sealedQuery === undefined ? url : `${url}?…`, connect } };
}

function invalidField(path: string, message: string) {
  return invalidRequest([{ path, message }]);
}
