// `POST /node/alive`, by which another node asks this process whether it's alive, and the request
// for it. Anybody else gets the response of an address that doesn't exist.

import { request } from 'undici';
import type { ApiInstance } from './http.ts';
import { ProblemError } from './problem.ts';

const path = '/node/alive';
/** Questions and answers are far shorter. */
const maxBodyBytes = 1_024;

/** @param answer returns undefined if the body isn't a question to this process */
export function registerAliveRoute(
  server: ApiInstance,
  answer: (question: unknown) => object | undefined,
): void {
  const options = { schema: { hide: true }, bodyLimit: maxBodyBytes };
  server.post(path, options, ({ body }) => {
    const given = answer(body);
    if (given === undefined) {
      throw new ProblemError('not-found', 'There is nothing at this address.');
    }
    return given;
  });
}

/**
 * Asks whether the process at this base URL is alive.
 *
 * @throws Error if there's no JSON response with status 200 before the signal aborts
 */
export async function requestAlive(
  url: string,
  question: object,
  signal: AbortSignal,
): Promise<unknown> {
  const response = await request(new URL(path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
    signal,
    // A connection that was open before an outage may be dead.
    reset: true,
  });
  let text = '';
  // Another program may respond, with as many bytes as it likes.
  for await (const chunk of response.body) {
    text += String(chunk);
    if (text.length > maxBodyBytes) throw new Error('the response is too long');
  }
  if (response.statusCode !== 200) throw new Error(`the status is ${response.statusCode}`);
  return JSON.parse(text);
}
