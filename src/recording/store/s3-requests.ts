// Sends single requests to an S3 server. `aws4fetch` signs them; everything else about a request is
// ours: its bounds, its address, and what its failure means.

import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { AwsV4Signer } from 'aws4fetch';
import { Agent, request } from 'undici';
import type { BucketTarget, StoreFault } from './recording-store.ts';
import { connectTimeoutMs, requestTimeoutMs } from './store-bounds.ts';

export type S3Request = {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** The object's name below the prefix. */
  readonly name: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly timeoutMs?: number;
};

export type S3Response = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
};

export type S3Answer =
  | (S3Response & { readonly ok: true; readonly text: string })
  | { readonly ok: false; readonly fault: StoreFault; readonly status?: number };

export type S3Stream =
  | (S3Response & { readonly ok: true; readonly content: Readable })
  | { readonly ok: false; readonly fault: StoreFault; readonly status?: number };

/** The documents of S3 are a few hundred bytes. */
const maxTextBytes = 64 * 1_024;
/** The keeper's uploads, and some readers. */
const maxConnections = 16;

export class S3Requests {
  readonly #target: BucketTarget;
  readonly #base: string;
  readonly #agent = new Agent({
    connect: { timeout: connectTimeoutMs },
    connections: maxConnections,
    headersTimeout: 0,
    bodyTimeout: requestTimeoutMs,
  });

  constructor(target: BucketTarget) {
    this.#target = target;
    this.#base = baseOf(target);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** Sends a request whose response is short. */
  async send(what: S3Request): Promise<S3Answer> {
    try {
      const response = await this.#request(what, AbortSignal.timeout(timeoutOf(what)));
      const text = await boundedText(response.body);
      const { statusCode: status, headers } = response;
      // A server that has already begun its response says in the document that it failed.
      const isError = status >= 300 || /<Error>/.test(text.slice(0, 1_024));
      if (isError) return { ok: false, status, fault: this.#refusal(status, text) };
      return { ok: true, status, headers, text };
    } catch (error) {
      return { ok: false, fault: networkFault(error) };
    }
  }

  /** Sends a request whose response is an object. */
  async stream(what: S3Request): Promise<S3Stream> {
    try {
      const untilHeaders = new AbortController();
      const timer = setTimeout(() => untilHeaders.abort(timedOut()), timeoutOf(what));
      const response = await this.#request(what, untilHeaders.signal).finally(() =>
        clearTimeout(timer),
      );
      const { statusCode: status, headers } = response;
      if (status < 300) return { ok: true, status, headers, content: response.body };
      const fault = this.#refusal(status, await boundedText(response.body));
      return { ok: false, status, fault };
    } catch (error) {
      return { ok: false, fault: networkFault(error) };
    }
  }

  /** Returns an address that is signed, so that it works without credentials. */
  async signedAddress(name: string, seconds: number): Promise<string> {
    const { url } = await new AwsV4Signer({
      ...this.#credentials(),
      ...{ method: 'GET', url: this.#address(name, { 'X-Amz-Expires': String(seconds) }) },
      signQuery: true,
    }).sign();
    return url.toString();
  }

  async #request({ method, name, query, headers, body }: S3Request, signal: AbortSignal) {
    const signed = await new AwsV4Signer({
      ...this.#credentials(),
      ...{ method, url: this.#address(name, query ?? {}) },
      // The server compares the hash with what arrives, so a damaged part isn't stored.
      headers: { ...headers, 'x-amz-content-sha256': sha256(body ?? Buffer.alloc(0)) },
    }).sign();
    return await request(signed.url, {
      method,
      headers: Object.fromEntries(signed.headers),
      body: body ?? null,
      dispatcher: this.#agent,
      signal,
    });
  }

  #credentials() {
    const { accessKeyId, secretAccessKey, sessionToken, region } = this.#target;
    return {
      ...{ accessKeyId, secretAccessKey, region, service: 's3' },
      ...(sessionToken === undefined ? {} : { sessionToken }),
    };
  }

  #address(name: string, query: Readonly<Record<string, string>>): string {
    const path = [this.#target.prefix, name].filter((part) => part !== '').join('/');
    // `URL` would leave characters as they are that the signature encodes, e.g. `+` and `%`.
    const encoded = path.split('/').map(encodeURIComponent).join('/');
    const url = new URL(`${this.#base}/${encoded}`);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    return url.toString();
  }

  #refusal(status: number, text: string): StoreFault {
    const code = /<Code>([\w.-]{1,64})<\/Code>/.exec(text)?.[1] ?? String(status);
    return refusalOf(status, code, this.#target);
  }
}

/**
 * AWS wants the bucket in the host's name, and its certificates don't cover a bucket with a dot.
 * Other servers want the bucket in the path.
 */
function baseOf({ endpoint, region, bucket }: BucketTarget): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/+$/, '')}/${bucket}`;
  return bucket.includes('.')
    ? `https://s3.${region}.amazonaws.com/${bucket}`
    : `https://${bucket}.s3.${region}.amazonaws.com`;
}

const credentialCodes = [
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'InvalidSecurity',
];
const fullCodes = ['QuotaExceeded', 'XMinioStorageFull', 'InsufficientStorage', 'EntityTooLarge'];
const regionCodes = [
  'AuthorizationHeaderMalformed',
  'PermanentRedirect',
  'IllegalLocationConstraintException',
];
const slowCodes = ['SlowDown', 'RequestTimeout', 'ServiceUnavailable', 'TooManyRequests'];

/**
 * Explains a response with an error status.
 * @internal
 */
export function refusalOf(
  status: number,
  code: string,
  { bucket, region }: Pick<BucketTarget, 'bucket' | 'region'>,
): StoreFault {
  if (fullCodes.includes(code) || status === 507) {
    return { kind: 'full', code, detail: `the bucket ${bucket} is full (${code})` };
  }
  if (slowCodes.includes(code) || status === 429) {
    return { kind: 'slow', code, detail: `the store asks for fewer requests (${code})` };
  }
  if (status >= 500 || status < 300) {
    return { kind: 'unreachable', code, detail: `the store has failed (${code})` };
  }
  return { kind: 'refused', code, detail: refusalText(status, code, { bucket, region }) };
}

function refusalText(
  status: number,
  code: string,
  { bucket, region }: Pick<BucketTarget, 'bucket' | 'region'>,
): string {
  if (code === 'NoSuchBucket') return `the bucket ${bucket} does not exist`;
  if (code === 'RequestTimeTooSkewed')
    return 'the clock of this machine differs from the store’s (RequestTimeTooSkewed)';
  if (regionCodes.includes(code) || status === 301)
    return `the bucket ${bucket} is not in S3_REGION ${region} (${code})`;
  if (credentialCodes.includes(code))
    return `the store refuses AWS_ACCESS_KEY_ID or its secret (${code})`;
  return status === 401 || status === 403
    ? `the access key may not do this in the bucket ${bucket} (${code})`
    : `the store refuses the request (${code})`;
}

const timeoutCodes = ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_ABORTED'];

/** Uses only the code: messages contain addresses, which may contain a signature. */
function networkFault(error: unknown): StoreFault {
  const isTimeout = error instanceof Error && error.name === 'TimeoutError';
  const code = codeOf(error);
  if (isTimeout || timeoutCodes.includes(code ?? '')) {
    return { kind: 'slow', code: 'timeout', detail: 'the store did not answer in time' };
  }
  if (code === undefined) throw new Error('a request to the store', { cause: error });
  return { kind: 'unreachable', code, detail: `the store cannot be reached (${code})` };
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return codeOf(error.cause);
}

function timeoutOf({ timeoutMs = requestTimeoutMs }: S3Request): number {
  return timeoutMs;
}

function timedOut(): Error {
  return new DOMException('no response in time', 'TimeoutError');
}

async function boundedText(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxTextBytes) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
