// Sends requests unchanged over a socket. This side normalises nothing, and refuses only what HTTP
// cannot express.

import { Agent, request as send } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import type { Answer } from './answers.ts';
import { encodedAsFarAsPossible } from './changes.ts';
import { bodyTypeOf } from './document.ts';
import type { ApiRequest, Body } from './requests.ts';

export type Client = { send(request: Sent): Promise<Answer>; close(): void };

export type Sent = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
};

export function createClient(baseUrl: string): Client {
  const { hostname, port } = new URL(baseUrl);
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  return {
    send: ({ method, path, headers, body }) =>
      new Promise((resolve, reject) => {
        const length = body === undefined ? {} : { 'content-length': String(body.length) };
        const request = send({
          ...{ agent, hostname, port, path, headers: { ...length, ...headers } },
          method: method.toUpperCase(),
        });
        let answered = false;
        request.on('response', (response) => {
          answered = true;
          buffer(response).then((raw) => {
            const encoding = response.headers['content-encoding'];
            const text = decoded(raw, encoding).toString('utf8');
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
          }, reject);
        });
        // A server that has answered may close the connection before it has read everything.
        request.on('error', (error) => !answered && reject(error));
        request.end(body);
      }),
    close: () => agent.destroy(),
  };
}

/** The request as it is sent, without its credentials. */
export function written({ operation, path, query, headers, body }: ApiRequest): Sent {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => path[name] ?? '');
  const search = query
    .map(([name, value]) => `${encodedAsFarAsPossible(name)}=${encodedAsFarAsPossible(value)}`)
    .join('&');
  const bytes = bytesOf(body);
  const type = bytes === undefined ? {} : { 'content-type': bodyTypeOf(operation) };
  return {
    method: operation.method,
    path: search === '' ? filled : `${filled}?${search}`,
    headers: { ...type, ...mapValues(headers, asHeader) },
    body: bytes,
  };
}

function bytesOf(body: Body | undefined): Buffer | undefined {
  if (body === undefined) return undefined;
  if ('raw' in body) return Buffer.from(body.raw, body.encoding);
  const text = JSON.stringify(body.json) as string | undefined;
  return text === undefined ? undefined : Buffer.from(text);
}

/** Node sends only characters that a header may contain. */
function asHeader(value: string): string {
  return value.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '?');
}

function mapValues(
  record: Readonly<Record<string, string>>,
  map: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}

function decoded(raw: Buffer, encoding = 'identity'): Buffer {
  switch (encoding) {
    case 'gzip':
      return gunzipSync(raw);
    case 'deflate':
      return inflateSync(raw);
    case 'br':
      return brotliDecompressSync(raw);
    default:
      return raw;
  }
}
