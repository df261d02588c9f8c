// The member `stream` of a dial-out request, and the stream of a bot: what an address of a bot may be, and what a request, its
// bot and its app come to together.

import { z } from 'zod';
import { type RequestedStream, streamConnects } from '../calls/stream.ts';
import type { MemberError } from '../http/problem.ts';
import type { App } from '../store/app-directory.ts';
import type { StreamAddress } from '../store/stream-addresses.ts';
import type { StreamServices } from './services.ts';

const maxUrlLength = 2_048;
/** They are told in one message at the start of the stream, with the metadata. */
const maxParameters = 50;
const maxParameterLength = 1_024;

const plainText = /^[^\p{Cc}\p{Cs}]*$/u;

function streamUrlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'must be an absolute URL';
  const url = new URL(text);
  if (url.protocol !== 'ws:' && url.protocol !== 'wss:') return 'must be a ws or wss URL';
  if (url.username !== '' || url.password !== '') return 'must not hold a user or password';
  if (text.includes('#')) return 'must not have a fragment';
  return undefined;
}

/** Kept to the letter: bots check a signature over it. */
export const streamUrl = z
  .string()
  .max(maxUrlLength)
  .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII without spaces')
  .superRefine((text, context) => {
    const problem = streamUrlProblem(text);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

export const streamConnect = z.enum(streamConnects);

export const streamSchema = z.object({
  url: streamUrl
    .optional()
    .describe(
      'ws or wss URL of the bot; its query string is kept encrypted. Left out: that of the bot',
    ),
  connect: streamConnect
    .optional()
    .describe(
      '`answered`: at the 200 OK; `person`: when detection says that a person is there, which needs `machineDetection`. Left out: as the bot has it, or `answered`',
    ),
  parameters: z
    .record(z.string().min(1).max(128).regex(plainText), z.string().max(maxParameterLength))
    .refine((parameters) => Object.keys(parameters).length <= maxParameters, {
      message: `must have at most ${maxParameters} members`,
    })
    .optional()
    .describe('told to the bot as `customParameters`, with the metadata'),
});

export type WantedStream = z.output<typeof streamSchema>;

type Asking = {
  readonly bot: { readonly botId: string; readonly stream?: StreamAddress };
  readonly app: Pick<App, 'appId' | 'streamSecrets'>;
  readonly detects: boolean;
  readonly streams: StreamServices;
};

export type ResolvedStream =
  | { readonly ok: true; readonly stream?: RequestedStream }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** `wanted`: undefined leaves it to the bot, null wants none. */
export function resolveStream(
  wanted: WantedStream | null | undefined,
  { bot, app, detects, streams }: Asking,
): ResolvedStream {
  if (wanted === null || (wanted === undefined && bot.stream === undefined)) return { ok: true };
  const errors = streamErrors(wanted, { bot, app, detects, streams });
  if (errors.length > 0) return { ok: false, errors };
  const address =
    wanted?.url === undefined ? addressOf(bot.stream) : streams.seal(bot.botId, wanted.url);
  const connect = wanted?.connect ?? bot.stream?.connect ?? 'answered';
  return {
    ok: true,
    stream: {
      ...address,
      // Without detection nobody would ever say that a person is there.
      connect: detects ? connect : 'answered',
      parameters: wanted?.parameters ?? {},
    },
  };
}

function streamErrors(
  wanted: WantedStream | undefined,
  { bot, app, detects, streams }: Asking,
): readonly MemberError[] {
  const errors: MemberError[] = [];
  const say = (path: string, message: string) => errors.push({ path, message });
  if (app.streamSecrets === undefined) {
    say(
      'stream',
      `the app has no stream secret yet: offhook apps rotate ${app.appId} stream makes one`,
    );
  }
  if (wanted?.url === undefined && bot.stream === undefined) {
    say('stream.url', 'is required: the bot has none');
  }
  if (wanted?.url !== undefined && !streams.isReachable(new URL(wanted.url))) {
    say(
      'stream.url',
      'must not be a private, local or reserved address that STREAM_ALLOWED_NETWORKS lacks',
    );
  }
  if (wanted?.connect === 'person' && !detects) {
    say('stream.connect', 'person needs machineDetection: detect or disconnect');
  }
  return errors;
}

function addressOf(
  stream: StreamAddress | undefined,
): Pick<RequestedStream, 'url' | 'sealedQuery'> {
  if (stream === undefined) throw new Error('a stream without an address passed its checks');
  const { url, sealedQuery } = stream;
  return { url, ...(sealedQuery === undefined ? {} : { sealedQuery }) };
}
