// Parts that every documented route shares: errors as problem documents, and the way in.

import type { z } from 'zod';
import { problemSchema } from './problem.ts';

const descriptions = {
  400: 'The request is not valid; `errors` lists every problem with its path',
  401: 'No credentials of the kind that this needs, or ones that are not valid. Of a token the same words until its signature is verified; then the claim that is wrong',
  403: 'The app lacks the scope or the access, or may not dial the number; or the link is not valid any more',
  404: 'There is no such thing, or the app may not see it',
  406: 'The answer is JSON, and `Accept` excludes it',
  409: 'The idempotency key was used with another request, or what is asked is not possible as things stand',
  413: 'The body is larger than the operation takes: 256 KiB, unless it says otherwise',
  415: 'The body is not `application/json`, or whatever else the operation takes',
  429: 'Too many calls wait, or the app has as many as it may, or too many requests with bad credentials came from the same address; see `Retry-After`',
  500: 'Something went wrong on our side',
  503: 'The database, or what else the request needs, is unreachable, or too many reads of the account are under way, or this one took too long; see `Retry-After`',
} as const;

/** Wherever credentials are asked for. */
const ofFailures =
  'Too many requests with bad credentials came from the same address; good ones are never refused so. See `Retry-After`';

export type ProblemStatus = keyof typeof descriptions;

/** `response` of a route: its success, and the problems it may answer with. */
export function responses<Success extends z.ZodType>(
  description: string,
  success: Success,
  problems: readonly ProblemStatus[],
) {
  const limited = problems.includes(401) && !problems.includes(429) ? [429 as const] : [];
  const documented = [...problems, ...limited, 500 as const, 503 as const];
  return {
    200: { description, content: { 'application/json': { schema: success } } },
    ...Object.fromEntries(
      documented.map((status) => [
        status,
        {
          description: limited.includes(status as 429) ? ofFailures : descriptions[status],
          content: { 'application/problem+json': { schema: problemSchema } },
        },
      ]),
    ),
  };
}

/** The same of a route that has something done: 202 (RFC 9110 section 15.3.3). */
export function accepted<Success extends z.ZodType>(
  description: string,
  success: Success,
  problems: readonly ProblemStatus[],
) {
  const { 200: answer, ...others } = responses(description, success, problems);
  return { 202: answer, ...others };
}

/** Every route that needs a token. */
export const authenticated = { security: [{ auth: [] }] };

/** The routes that take an API key instead: connections. */
export const authenticatedByApiKey = { security: [{ apiKey: [] }] };
