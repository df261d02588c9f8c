// The stored form of a bot's stream URL. The query string may be a secret, so it is encrypted. The
// rest isn't. The ciphertext is bound to the bot, so that requests for this bot can reuse the
// address.

import type { RequestedStream, StreamConnect } from '../../calls/stream/stream.ts';
import type { SecretBox } from '../secrets.ts';

export type StreamAddress = Pick<RequestedStream, 'url' | 'sealedQuery' | 'connect'>;

export function sealStreamUrl(
  secrets: SecretBox,
  botId: string,
  url: string,
): Pick<RequestedStream, 'url' | 'sealedQuery'> {
  const at = url.indexOf('?');
  if (at === -1) return { url };
  const query = secrets.seal('stream-query', botId, url.slice(at));
  return { url: url.slice(0, at), sealedQuery: query.toString('base64') };
}

/**
 * Returns exactly the URL that was sealed.
 *
 * @throws Error if the key differs
 */
export function openStreamUrl(
  secrets: SecretBox,
  botId: string,
  { url, sealedQuery }: Pick<RequestedStream, 'url' | 'sealedQuery'>,
): string {
  if (sealedQuery === undefined) return url;
  return `${url}${secrets.open('stream-query', botId, Buffer.from(sealedQuery, 'base64'))}`;
}

/** The stream columns of a bot's row. */
export type StreamColumns = {
  readonly stream_url: string | null;
  readonly stream_query: Buffer | null;
  readonly stream_connect: StreamConnect | null;
};

/** Returns the columns in this order: address, query string, when to connect. */
export function toStreamColumns(
  stream: StreamAddress | null | undefined,
): readonly [string | null, Buffer | null, StreamConnect | null] {
  if (stream == null) return [null, null, null];
  const { url, sealedQuery, connect } = stream;
  return [url, sealedQuery === undefined ? null : Buffer.from(sealedQuery, 'base64'), connect];
}

export function streamOf(row: StreamColumns): StreamAddress | undefined {
  const { stream_url: url, stream_query: query, stream_connect: connect } = row;
  if (url === null) return undefined;
  return {
    url,
    connect: connect ?? 'answered',
    ...(query === null ? {} : { sealedQuery: query.toString('base64') }),
  };
}
