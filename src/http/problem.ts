// Turns every error that leaves the API into a problem document (RFC 9457). If the client should
// read the error's message, throw a `ProblemError`. Any other error becomes a 500, or a 503 while
// the database is unreachable. Those documents don't reveal the cause, but operators can find it in
// the log by the document's request id.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { MemberError } from '../calls/contract/schema.ts';
import { ReadRefusedError } from '../store/reads.ts';
import { isConflict, isUnreachable } from '../store/sql-errors.ts';

/**
 * The status and title of each kind of problem. The problems table in src/api/README.md is
 * generated from this object.
 */
export const problemKinds = {
  'invalid-request': { status: 400, title: 'The request is not valid' },
  unauthorized: { status: 401, title: 'Credentials are missing or not valid' },
  forbidden: { status: 403, title: 'Not permitted' },
  'not-found': { status: 404, title: 'Not found' },
  'method-not-allowed': { status: 405, title: 'The address does not accept this method' },
  'not-acceptable': { status: 406, title: 'No acceptable representation' },
  'request-timeout': { status: 408, title: 'The request did not arrive in time' },
  conflict: { status: 409, title: 'Not possible in the current state' },
  'idempotency-conflict': { status: 409, title: 'The idempotency key was used before' },
  'body-too-large': { status: 413, title: 'The body is too large' },
  'unsupported-media-type': { status: 415, title: 'The body is not JSON' },
  'range-not-satisfiable': { status: 416, title: 'The range lies behind the end' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  'headers-too-large': { status: 431, title: 'The headers are too large' },
  internal: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Service unavailable' },
  'acceptance-unknown': {
    status: 503,
    title: 'It is not known whether the request was accepted',
  },
} as const;

export type ProblemKind = keyof typeof problemKinds;
export type { MemberError };

type ProblemExtras = {
  readonly errors?: readonly MemberError[];
  readonly retryAfterS?: number;
  /** The scheme for the `WWW-Authenticate` header of a 401. Default: `Bearer`. */
  readonly challenge?: string;
  /** The methods that the address accepts, for a 405. */
  readonly allow?: readonly string[];
  readonly cause?: unknown;
};

export class ProblemError extends Error {
  readonly kind: ProblemKind;
  readonly errors: readonly MemberError[] | undefined;
  readonly retryAfterS: number | undefined;
  readonly challenge: string;
  readonly allow: readonly string[] | undefined;

  constructor(kind: ProblemKind, detail: string, extras: ProblemExtras = {}) {
    super(detail, extras.cause === undefined ? {} : { cause: extras.cause });
    this.name = 'ProblemError';
    this.kind = kind;
    this.errors = extras.errors;
    this.retryAfterS = extras.retryAfterS;
    this.challenge = extras.challenge ?? 'Bearer';
    this.allow = extras.allow;
  }

  get status(): number {
    return problemKinds[this.kind].status;
  }
}

export function invalidRequest(errors: readonly MemberError[]): ProblemError {
  const count = errors.length === 1 ? 'One field is' : `${errors.length} fields are`;
  return new ProblemError('invalid-request', `${count} not valid; see errors.`, { errors });
}

export function badCursor(): ProblemError {
  return invalidRequest([{ path: 'cursor', message: 'is not the `nextCursor` of a page' }]);
}

export function problemHeaders(problem: ProblemError): Record<string, string> {
  return {
    'content-type': 'application/problem+json; charset=utf-8',
    'cache-control': 'no-store',
    ...(problem.retryAfterS === undefined ? {} : { 'retry-after': String(problem.retryAfterS) }),
    ...(problem.allow === undefined ? {} : { allow: problem.allow.join(', ') }),
    // A 401 must name the scheme (RFC 9110 section 11.6.1), even though our clients send their
    // credentials in the `auth` or `x-api-key` header, not in `Authorization`.
    ...(problem.kind === 'unauthorized'
      ? { 'www-authenticate': `${problem.challenge} realm="offhook"` }
      : {}),
  };
}

/** Returns the document as text, because a response schema could change or reject an object. */
export function problemBody(problem: ProblemError, requestId: string): string {
  const { status, title } = problemKinds[problem.kind];
  return JSON.stringify({
    type: `urn:offhook:problem:${problem.kind}`,
    title,
    status,
    detail: problem.message,
    ...(problem.errors === undefined ? {} : { errors: problem.errors }),
    requestId,
  });
}

export function answerProblem(
  problem: ProblemError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return reply
    .code(problem.status)
    .headers({ ...problemHeaders(problem), 'x-request-id': request.id })
    .send(problemBody(problem, request.id));
}

export const problemSchema = z
  .object({
    type: z.string().describe('`urn:offhook:problem:<kind>`; programs should decide by this field'),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().describe('what went wrong with this request, for people'),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe('each invalid field of the request with its dotted path'),
    requestId: z
      .string()
      .describe('also in the `x-request-id` header; quote it when you ask the operator'),
  })
  .meta({
    id: 'Problem',
    description: 'An error, as RFC 9457 describes it (`application/problem+json`).',
    examples: [
      {
        type: 'urn:offhook:problem:invalid-request',
        title: 'The request is not valid',
        status: 400,
        detail: 'One field is not valid; see errors.',
        errors: [{ path: 'target', message: 'must be a tel: or sip: URI' }],
        requestId: '0b1c0cf9-6d8e-4f0a-9c4e-2a3d6b0a7c11',
      },
    ],
  });

/**
 * In bytes. Even with every field at its limit, a request is smaller than 40 KiB. The rest leaves
 * room for fields that we ignore.
 */
export const defaultBodyLimit = 256 * 1_024;

/**
 * Tells clients when to retry while a dependency is unreachable. Most restarts and fail-overs are
 * faster than this.
 */
export const dependencyRetryAfterS = 5;

/**
 * Translates any error into a problem.
 *
 * @param bodyLimit the route's limit in bytes, for the message about an oversized body
 */
export function toProblem(error: unknown, bodyLimit = defaultBodyLimit): ProblemError {
  if (error instanceof ProblemError) return error;
  if (hasZodFastifySchemaValidationErrors(error)) {
    return invalidRequest(
      error.validation.map((issue) => ({
        path: issue.instancePath.slice(1).replaceAll('/', '.'),
        message: issue.message ?? 'is not valid',
      })),
    );
  }
  const fastifyProblem = isFastifyError(error) ? fromFastify(error, bodyLimit) : undefined;
  if (fastifyProblem !== undefined) return fastifyProblem;
  if (error instanceof ReadRefusedError) {
    return new ProblemError('unavailable', error.message, {
      retryAfterS: dependencyRetryAfterS,
      cause: error,
    });
  }
  if (isUnreachable(error) || isConflict(error)) {
    const state = isConflict(error) ? 'busy' : 'unreachable';
    return new ProblemError('unavailable', `The database is ${state}. Try again shortly.`, {
      retryAfterS: dependencyRetryAfterS,
      cause: error,
    });
  }
  return new ProblemError('internal', 'The gateway failed to handle the request.', {
    cause: error,
  });
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
}

function fromFastify(error: FastifyError, bodyLimit: number): ProblemError | undefined {
  const cause = { cause: error };
  switch (error.statusCode ?? 500) {
    case 400:
      // The cause is either a wrong Content-Length, or a bad escape in the path.
      return new ProblemError('invalid-request', sentence(error.message), cause);
    case 403: // The path leads out of the folder of static files.
    case 404:
      return new ProblemError('not-found', 'There is nothing at this address.', cause);
    case 408:
      return new ProblemError('request-timeout', 'The request did not arrive in time.', cause);
    case 413:
      return new ProblemError(
        'body-too-large',
        `The body is larger than ${bodyLimit / 1_024} KiB.`,
        cause,
      );
    case 414:
      return new ProblemError('not-found', 'The address is too long.', cause);
    case 415:
      return new ProblemError('unsupported-media-type', 'Send application/json.', cause);
    case 503:
      return new ProblemError(
        'unavailable',
        'The response took too long, or the gateway is shutting down.',
        {
          retryAfterS: dependencyRetryAfterS,
          cause: error,
        },
      );
    default:
      return undefined;
  }
}

function sentence(message: string): string {
  return message.endsWith('.') ? message : `${message}.`;
}
