// Resolves the stream of a dial-out request from its `stream` field and the bot's registration, and
// checks the bot's address.

import type { z } from 'zod';
import type { MemberError } from '../contract/schema.ts';
import type { RequestedStream, StreamConnect } from './stream.ts';
import type { streamMember } from './stream-members.ts';

type SealedAddress = Pick<RequestedStream, 'url' | 'sealedQuery'>;

/** Checks bots' addresses, and encrypts them for storage. */
export type BotAddresses = {
  /**
   * Whether bots are allowed at this URL's host. We can't check a host name until it is resolved.
   */
  isReachable(url: URL): boolean;
  /**
   * Returns the URL in the form in which we store it, i.e. with the query string encrypted, because
   * that may be secret.
   */
  seal(botId: string, url: string): SealedAddress;
};

type WantedStream = z.output<typeof streamMember>;

type RegisteredStream = SealedAddress & { readonly connect: StreamConnect };

type ResolveOptions = {
  readonly bot: { readonly botId: string; readonly stream?: RegisteredStream };
  readonly detects: boolean;
  readonly streams: BotAddresses;
};

export type ResolvedStream =
  | { readonly ok: true; readonly stream?: RequestedStream }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/**
 * Resolves the stream. If `wanted` is undefined, the bot's registered stream applies, if there is
 * one. Null means no stream.
 */
export function resolveStream(
  wanted: WantedStream | null | undefined,
  { bot, detects, streams }: ResolveOptions,
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
      // Without detection, nobody would ever be recognised as a person.
      connect: detects ? connect : 'answered',
      parameters: wanted?.parameters ?? {},
    },
  };
}

export const notReachable =
  'must not be a private, local or reserved address outside STREAM_ALLOWED_NETWORKS';

function streamErrors(
  wanted: WantedStream | undefined,
  { bot, detects, streams }: ResolveOptions,
): readonly MemberError[] {
  const errors: MemberError[] = [];
  const addError = (path: string, message: string) => errors.push({ path, message });
  if (wanted?.url === undefined && bot.stream === undefined) {
    addError('stream.url', 'is required: the bot has no stream URL');
  }
  if (wanted?.url !== undefined && !streams.isReachable(new URL(wanted.url))) {
    addError('stream.url', notReachable);
  }
  if (wanted?.connect === 'person' && !detects) {
    addError('stream.connect', 'person needs machineDetection: detect or disconnect');
  }
  return errors;
}

function addressOf(stream: RegisteredStream | undefined): SealedAddress {
  if (stream === undefined) throw new Error('a stream without an address passed its checks');
  const { url, sealedQuery } = stream;
  return { url, ...(sealedQuery === undefined ? {} : { sealedQuery }) };
}
