// Sends a JSON request to the gateway. Throws a CliError if the response is a problem document.

import { z } from 'zod';
import { CliError, notRunning } from './cli-error.ts';

/** This is longer than the gateway's own time-out for handlers. */
const timeoutMs = 20_000;

const problemSchema = z.object({
  detail: z.string(),
  errors: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .readonly()
    .optional(),
});

export type JsonRequest = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** A WAV file, sent instead of `body`. */
  readonly file?: Buffer<ArrayBuffer>;
};

type Sent = Omit<JsonRequest, 'headers'> & {
  readonly headers?: JsonRequest['headers'] | undefined;
  readonly signal?: AbortSignal;
  /** Sent instead of `body`, as it is read. */
  readonly parts?: AsyncIterable<Uint8Array>;
};

/**
 * Sends the request and returns the response. There's no need to validate the response, because the
 * gateway is part of the same program.
 *
 * @throws CliError if the gateway is unreachable or responds with an error
 */
export async function requestJson<Answer>(url: string, request: JsonRequest = {}): Promise<Answer> {
  return await answerOf(await send(url, request));
}

/**
 * Sends a GET request and returns the response in parts, as they arrive.
 *
 * @throws CliError if the gateway is unreachable or responds with an error
 */
export async function requestParts(
  url: string,
  { headers, signal }: Pick<JsonRequest, 'headers'> & { readonly signal: AbortSignal },
): Promise<AsyncIterable<Uint8Array>> {
  // The time-out ends with the beginning of the response, because a file may take long.
  const started = new AbortController();
  const timer = setTimeout(() => started.abort(), timeoutMs);
  try {
    const response = await send(url, {
      headers,
      signal: AbortSignal.any([signal, started.signal]),
    });
    if (!response.ok) {
      throw new CliError(describeErrorResponse(response.status, await response.text()));
    }
    if (response.body === null) throw new CliError('the gateway responded without a body');
    return response.body;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Sends a POST request whose body is read in parts, and returns the response. There is no time-out,
 * because a file may take long; the gateway has one for pauses.
 *
 * @throws CliError if the gateway is unreachable or responds with an error
 */
export async function sendParts<Answer>(
  url: string,
  {
    headers,
    parts,
    signal,
  }: Pick<JsonRequest, 'headers'> & {
    readonly parts: AsyncIterable<Uint8Array>;
    readonly signal: AbortSignal;
  },
): Promise<Answer> {
  const response = await send(url, { method: 'POST', headers, parts, signal });
  return await answerOf(response);
}

async function answerOf<Answer>(response: Response): Promise<Answer> {
  const text = await response.text();
  if (!response.ok) throw new CliError(describeErrorResponse(response.status, text));
  return JSON.parse(text) as Answer;
}

async function send(
  url: string,
  { method = 'GET', headers, body, file, parts, signal = AbortSignal.timeout(timeoutMs) }: Sent,
): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(file === undefined ? {} : { 'content-type': 'audio/wav' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(file === undefined ? {} : { body: file }),
      ...(parts === undefined ? {} : { body: parts, duplex: 'half' as const }),
      signal,
    });
  } catch (error) {
    throw new CliError(`${new URL(url).origin} does not answer. ${notRunning}`, { cause: error });
  }
}

export function describeProblem(
  status: number,
  { detail, errors = [] }: z.infer<typeof problemSchema>,
): string {
  return `${status}: ${detail}${errors.map(({ path, message }) => `\n  ${path}: ${message}`).join('')}`;
}

function describeErrorResponse(status: number, text: string): string {
  try {
    return describeProblem(status, problemSchema.parse(JSON.parse(text)));
  } catch {
    return `the gateway responded with ${status}`;
  }
}
