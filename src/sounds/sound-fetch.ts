// Fetches a WAV file over HTTP. We connect only to addresses that the guard permits. We also don't
// follow redirects, because they could lead to addresses that we haven't checked.

import type { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { type AddressGuard, AddressNotAllowedError } from '../lib/address-guard.ts';
import { maxFileBytes } from './conversion.ts';

/**
 * Validators for the copy in memory, with which the server can tell us whether that copy is
 * current.
 */
export type Validators = { readonly etag?: string; readonly lastModified?: string };

export type Fetched =
  | { readonly kind: 'file'; readonly file: Buffer; readonly validators: Validators }
  | { readonly kind: 'unchanged' }
  /** The server no longer has the file. */
  | { readonly kind: 'gone'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string };

export type SoundFetcher = {
  /**
   * Checks the URL without using the network. If the host is a name, the addresses to which it
   * resolves are checked later, by `fetch`.
   */
  mayFetch(url: URL): boolean;
  /** Fetches the file unless it's unchanged. Never rejects. */
  fetch(url: URL, validators: Validators): Promise<Fetched>;
  close(): Promise<void>;
};

export type SoundFetcherOptions = {
  /** Guard for https URLs. */
  readonly guard: AddressGuard;
  /**
   * Guard for http URLs. Any host on the path can tamper with http, so this guard permits only
   * private networks that have been allowed explicitly.
   */
  readonly privateGuard: AddressGuard;
  readonly timeoutMs?: number;
};

/**
 * Connecting and downloading together may take this long, which is enough for 10 MB at 8 Mbit/s.
 */
const defaultTimeoutMs = 10_000;
const maxValidatorLength = 1_024;

export function createSoundFetcher(options: SoundFetcherOptions): SoundFetcher {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const createAgent = ({ lookup }: AddressGuard) =>
    new Agent({
      connections: 2,
      pipelining: 1,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      connect: { timeout: timeoutMs, lookup },
    });
  const { guard: publicGuard, privateGuard } = options;
  const routes = {
    'https:': { guard: publicGuard, dispatcher: createAgent(publicGuard) },
    'http:': { guard: privateGuard, dispatcher: createAgent(privateGuard) },
  };
  const routeFor = (url: URL) => routes[url.protocol === 'http:' ? 'http:' : 'https:'];
  return {
    mayFetch: (url) => routeFor(url).guard.isHostAllowed(url),
    async fetch(url, validators) {
      const { guard, dispatcher } = routeFor(url);
      if (!guard.isHostAllowed(url)) return notAllowed(url);
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        return await requestFile(url, validators, { dispatcher, signal });
      } catch (error) {
        return signal.aborted
          ? { kind: 'failed', reason: `it did not arrive within ${timeoutMs / 1_000} s` }
          : resultForError(url, error);
      }
    },
    close: async () => {
      await Promise.all(Object.values(routes).map(({ dispatcher }) => dispatcher.destroy()));
    },
  };
}

async function requestFile(
  url: URL,
  validators: Validators,
  options: { readonly dispatcher: Agent; readonly signal: AbortSignal },
): Promise<Fetched> {
  const { statusCode, headers, body } = await request(url, {
    headers: requestHeaders(validators),
    ...options,
  });
  if (statusCode !== 200) {
    body.on('error', () => undefined).destroy();
    return resultForStatus(statusCode);
  }
  const file = await readFile(body);
  return file === undefined
    ? { kind: 'failed', reason: 'it is larger than 10 MiB' }
    : { kind: 'file', file, validators: readValidators(headers) };
}

function requestHeaders({ etag, lastModified }: Validators): Record<string, string> {
  return {
    accept: 'audio/wav, audio/*;q=0.9, */*;q=0.1',
    'accept-encoding': 'identity',
    ...(etag === undefined ? {} : { 'if-none-match': etag }),
    ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified }),
  };
}

function resultForStatus(status: number): Fetched {
  if (status === 304) return { kind: 'unchanged' };
  const reason = `the server responded with ${status}`;
  return { kind: status === 404 || status === 410 ? 'gone' : 'failed', reason };
}

/** @returns undefined if the file is larger than `maxFileBytes` */
async function readFile(body: Readable): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxFileBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function readValidators(headers: Readonly<Record<string, string | string[] | undefined>>) {
  const { etag, 'last-modified': lastModified } = headers;
  const isUsable = (text: unknown): text is string =>
    typeof text === 'string' && text.length <= maxValidatorLength;
  return {
    ...(isUsable(etag) ? { etag } : {}),
    ...(isUsable(lastModified) ? { lastModified } : {}),
  };
}

function notAllowed({ protocol }: URL): Fetched {
  const reason =
    protocol === 'http:'
      ? 'http is allowed only in the networks listed in NOTIFY_ALLOWED_NETWORKS; use https'
      : 'its address is private, local or reserved, and not in NOTIFY_ALLOWED_NETWORKS';
  return { kind: 'failed', reason };
}

function resultForError(url: URL, error: unknown): Fetched {
  return isNotAllowed(error) ? notAllowed(url) : { kind: 'failed', reason: errorCode(error) };
}

function isNotAllowed(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return error instanceof AddressNotAllowedError || cause instanceof AddressNotAllowedError;
}

/**
 * Returns the error's code instead of its message, because the message may contain addresses in our
 * network.
 */
function errorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return error.code;
  return 'the connection failed';
}
