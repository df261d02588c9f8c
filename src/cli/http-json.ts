// One JSON request to the gateway; a problem document becomes the words of an error.

import { z } from 'zod';
import { CliError, notRunning } from './cli-error.ts';

/** Longer than the gateway's own bound for a handler. */
const timeoutMs = 20_000;

const problemSchema = z.object({
  detail: z.string(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

export type JsonRequest = {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

/** The answer is taken as it comes: the gateway is ours. */
export async function requestJson<Answer>(url: string, request: JsonRequest = {}): Promise<Answer> {
  const response = await send(url, request);
  const text = await response.text();
  if (!response.ok) throw new CliError(wordsOf(response.status, text));
  return JSON.parse(text) as Answer;
}

async function send(
  url: string,
  { method = 'GET', headers, body }: JsonRequest,
): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    throw new CliError(`${new URL(url).origin} does not answer. ${notRunning}`, { cause: error });
  }
}

function wordsOf(status: number, text: string): string {
  try {
    const problem = problemSchema.parse(JSON.parse(text));
    const errors = (problem.errors ?? []).map(({ path, message }) => `\n  ${path}: ${message}`);
    return `${status}: ${problem.detail}${errors.join('')}`;
  } catch {
    return `the gateway answered ${status}`;
  }
}
