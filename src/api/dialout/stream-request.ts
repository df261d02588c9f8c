// The member `stream` of a dial-out request, and the stream of a bot: what an address of a bot may be, and what a request, its
// bot and its app come to together.

import { z } from 'zod';
import { type RequestedStream, streamConnects } from '../../calls/stream/stream.ts';
import { streamParameters, streamUrl } from '../../calls/stream/stream-members.ts';
import type { MemberError } from '../../http/problem.ts';
import type { StreamAddress } from '../../store/apps/stream-addresses.ts';
import type { StreamServices } from '../services.ts';

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
  parameters: streamParameters.optional(),
});

export type WantedStream = z.output<typeof streamSchema>;

type Asking = {
  readonly bot: { readonly botId: string; readonly stream?: StreamAddress };
  readonly detects: boolean;
  readonly streams: StreamServices;
};

export type ResolvedStream =
  | { readonly ok: true; readonly stream?: RequestedStream }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** `wanted`: undefined leaves it to the bot, null wants none. */
export function resolveStream(
  wanted: WantedStream | null | undefined,
  { bot, detects, streams }: Asking,
): ResolvedStream {
  if (wanted === null || (wanted === undefined && bot.stream === undefined)) return { ok: true };
  const errors = streamErrors(wanted, { bot, detects, streams });
  if (errors.length > 0) return { ok: false, errors };
  const address =
    wanted?.url === undefined ? addressOf(bot.stream) : streams.seal(bot.botId, wanted.url);
  const connect = wanted?.connect ?? bot.stream?.connect ?? 'answered';
  return {
    ok: true,
    stream: {
      ...address,
      // Without detection nothing would ever say that a person is there.
      connect: detects ? connect : 'answered',
      parameters: wanted?.parameters ?? {},
    },
  };
}

export const notReachable =
  'must not be a private, local or reserved address that STREAM_ALLOWED_NETWORKS lacks';

function streamErrors(
  wanted: WantedStream | undefined,
  { bot, detects, streams }: Asking,
): readonly MemberError[] {
  const errors: MemberError[] = [];
  const say = (path: string, message: string) => errors.push({ path, message });
  if (wanted?.url === undefined && bot.stream === undefined) {
    say('stream.url', 'is required: the bot has none');
  }
  if (wanted?.url !== undefined && !streams.isReachable(new URL(wanted.url))) {
    say('stream.url', notReachable);
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
