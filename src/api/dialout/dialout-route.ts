// POST …/dialout: checks everything, hands it to the intake, and answers as soon as the request is durable.

import type { FastifyRequest } from 'fastify';
import { assertNever, type DialTarget } from '../../calls/call-types.ts';
import { mayDial } from '../../calls/target/app-limits.ts';
import { type ApiInstance, botRoute, type Caller } from '../../http/http.ts';
import type { Metrics } from '../../http/metrics.ts';
import {
  dependencyRetryAfterS,
  invalidRequest,
  type MemberError,
  ProblemError,
} from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { exceptBody } from '../../http/validation.ts';
import { parseTraceHeaders } from '../../lib/trace-context.ts';
import { botParams } from '../call-schemas.ts';
import type { ApiServices, DialoutAnswer, Submission, SubmitResult } from '../services.ts';
import { type Known, parseDialout } from './dialout-request.ts';
import { dialoutAnswerSchema, dialoutSchema, idempotencyKey } from './dialout-schema.ts';

export type DialoutDependencies = {
  readonly services: Pick<ApiServices, 'intake' | keyof Known>;
  readonly caller: Caller;
  readonly metrics: Metrics | undefined;
};

export function registerDialout(server: ApiInstance, deps: DialoutDependencies): void {
  server.route({
    method: 'POST',
    url: '/api/1.1/public/bot/:botId/V2/contactcenter/dialout',
    onRequest: deps.caller.require(botRoute('Dialout')),
    schema: {
      operationId: 'dialOut',
      summary: 'Place an outbound call',
      description:
        'Answers as soon as the request is stored, before the call is placed. With an `Idempotency-Key` a repeated request gets the first answer and `Idempotent-Replayed: true`, and no number is called twice.\n\nA 503 of the type `acceptance-unknown` does not say that nothing was accepted: repeat the request with the same key. Without a key, the phone may then ring twice.\n\nAn app may have limits: a number that it may not dial is a 403 that names `target` or `bridge.to`; a call beyond its calls at once, or its calls a day (in UTC), is a 429 with `Retry-After`. A repeated request counts for nothing.\n\nA `traceparent` and its `tracestate` (W3C Trace Context) are carried to every event and notification of the call.',
      tags: ['calls'],
      params: botParams,
      body: dialoutSchema,
      response: responses(
        'The request is stored and the call is under way',
        dialoutAnswerSchema,
        [400, 401, 403, 404, 406, 409, 413, 415, 429],
      ),
      ...authenticated,
    },
    // The schema documents the body; `parseDialout` reads it, because spellings and routes concern several members.
    validatorCompiler: exceptBody,
    // The request may be accepted when the time for its answer is up. Whatever is thrown goes to the server's own handler.
    errorHandler: (error, request) => {
      // Without a body the intake has not seen it.
      const isWithIntake = request.body !== undefined;
      if (error.code !== 'FST_ERR_HANDLER_TIMEOUT' || !isWithIntake) throw error;
      const hasKey = request.headers['idempotency-key'] !== undefined;
      throw acceptanceUnknown(hasKey, dependencyRetryAfterS, { cause: error });
    },
    handler: async (request, reply) => {
      const submission = toSubmission(request, deps);
      const result = await deps.services.intake.submit(submission);
      const answer = answerOf(result, submission);
      if (result.kind === 'replayed') void reply.header('idempotent-replayed', 'true');
      else deps.metrics?.callAccepted();
      return answer;
    },
  });
}

function toSubmission(request: FastifyRequest, deps: DialoutDependencies): Submission {
  const app = deps.caller.of(request);
  const bot = deps.caller.botOf(request);
  const key = request.headers['idempotency-key'];
  const keyProblems = idempotencyKeyProblems(key);
  const parsed = parseDialout(request.body, { bot, app }, deps.services);
  if (!parsed.ok || keyProblems.length > 0) {
    throw invalidRequest([...keyProblems, ...(parsed.ok ? [] : parsed.errors)]);
  }
  return {
    appId: app.appId,
    accountId: app.accountId,
    botId: bot.botId,
    request: { ...parsed.request, ...parseTraceHeaders(request.headers) },
    ...(app.limits === undefined ? {} : { limits: app.limits }),
    ...(parsed.remarks === undefined ? {} : { remarks: parsed.remarks }),
    ...(parsed.notifyHeaders === undefined ? {} : { notifyHeaders: parsed.notifyHeaders }),
    ...(typeof key === 'string' ? { idempotency: { key, requestHash: parsed.requestHash } } : {}),
  };
}

/** A key that is sent but unusable must not pass as "no key": the caller counts on it. */
function idempotencyKeyProblems(key: string | string[] | undefined): readonly MemberError[] {
  if (key === undefined) return [];
  const { error } = idempotencyKey.safeParse(key);
  return (error?.issues ?? []).map(({ message }) => ({ path: 'Idempotency-Key', message }));
}

/** Without a key there is no way to ask again that is safe. */
function acceptanceUnknown(
  hasKey: boolean,
  retryAfterS: number,
  { cause }: { readonly cause: Error },
): ProblemError {
  const advice = hasKey
    ? 'Repeat it with the same Idempotency-Key.'
    : 'It had no Idempotency-Key: where it is repeated, the phone may ring twice.';
  return new ProblemError(
    'acceptance-unknown',
    `It is not known whether the request was accepted. ${advice}`,
    { retryAfterS, cause },
  );
}

const limitDetails = {
  callsAtOnce: 'The app has as many calls at once as it may.',
  callsPerDay: 'The app has placed as many calls today, in UTC, as it may.',
} as const;

/** The limits may have changed since the request came in. */
function forbiddenMembers({ request, limits }: Submission): readonly string[] {
  const { target, bridge } = request;
  const isForbidden = (to: DialTarget): boolean => !mayDial(limits, to);
  const ofBridge = bridge !== undefined && isForbidden(bridge.to) ? ['bridge.to'] : [];
  return isForbidden(target) || ofBridge.length === 0 ? ['target', ...ofBridge] : ofBridge;
}

function answerOf(result: SubmitResult, submission: Submission): DialoutAnswer {
  switch (result.kind) {
    case 'accepted':
    case 'replayed':
      return result.answer;
    case 'conflict':
      throw new ProblemError(
        'idempotency-conflict',
        'The same Idempotency-Key came before with another request.',
      );
    case 'full':
      throw new ProblemError('too-many-requests', 'Too many calls wait to be placed.', {
        retryAfterS: result.retryAfterS,
      });
    case 'target-forbidden':
      throw new ProblemError('forbidden', 'The app may not dial this number.', {
        errors: forbiddenMembers(submission).map((path) => ({
          path,
          message: 'is not among the numbers that the app may dial',
        })),
      });
    case 'limit-reached':
      throw new ProblemError('too-many-requests', limitDetails[result.limit], {
        retryAfterS: result.retryAfterS,
      });
    case 'unavailable':
      throw new ProblemError('unavailable', 'Nothing was accepted. Try again shortly.', {
        retryAfterS: result.retryAfterS,
        cause: new Error(result.reason),
      });
    case 'unknown':
      throw acceptanceUnknown(submission.idempotency !== undefined, result.retryAfterS, {
        cause: new Error(result.reason),
      });
    default:
      return assertNever(result);
  }
}
