// The parts that all documented routes have in common: problem documents as errors, and the
// security schemes.

import type { z } from 'zod';
import { problemSchema } from './problem.ts';

const descriptions = {
  400: 'The request is not valid; `errors` lists every problem with its path',
  401: 'The credentials that this operation needs are missing or not valid. Until the signature of a token is verified, `detail` is the same for every fault; after that it names the wrong claim',
  403: 'The app lacks the scope or the access, or may not dial the number; or the link is no longer valid',
  404: 'The resource does not exist, or the app may not see it',
  406: 'The response is JSON, and `Accept` excludes it',
  409: 'The idempotency key was used with another request, or the operation is not possible in the current state',
  413: 'The body is larger than the operation accepts: 256 KiB, unless it says otherwise',
  415: 'The body is not `application/json`, or another content type that the operation accepts',
  416: '`Range` begins behind the end; `Content-Range` has the size',
  429: 'Too many calls are waiting, or the app has reached one of its limits, or too many requests with bad credentials came from the same address; see `Retry-After`',
  500: 'The gateway failed to handle the request',
  503: 'The database, or another service that the request needs, is unreachable; or too many reads of the account are under way; or this read took too long. See `Retry-After`',
} as const;

/** Describes the 429 response for routes that only send it to clients that fail to authenticate. */
const tooManyFailuresDescription =
  'Too many requests with bad credentials came from the same address. Requests with good credentials are still accepted. See `Retry-After`';

export type ProblemStatus = keyof typeof descriptions;

/**
 * Builds a route's `response`: the successful response, and the problems that the route may return.
 */
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
          description: limited.includes(status as 429)
            ? tooManyFailuresDescription
            : descriptions[status],
          content: { 'application/problem+json': { schema: problemSchema } },
        },
      ]),
    ),
  };
}

/**
 * Like `responses`, but for a route that returns 202 because its work isn't finished yet (RFC 9110,
 * 15.3.3).
 */
export function accepted<Success extends z.ZodType>(
  description: string,
  success: Success,
  problems: readonly ProblemStatus[],
) {
  const { 200: described, ...others } = responses(description, success, problems);
  return { 202: described, ...others };
}

/** Spread this into the schema of a route that needs a token. */
export const authenticated = { security: [{ auth: [] }] };

/** Spread this into the schema of a route that needs an API key instead, as connections do. */
export const authenticatedByApiKey = { security: [{ apiKey: [] }] };
