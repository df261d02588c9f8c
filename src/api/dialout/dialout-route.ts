// Serves POST …/dialout. The route checks the request, passes it to the intake, and responds as
// soon as the intake has stored it.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { assertNever, type DialTarget } from '../../calls/call-types.ts';
import { keyOf } from '../../calls/recording/recording-request.ts';
import { mayDial, targetsOf } from '../../calls/target/app-limits.ts';
import { type ApiInstance, botRoute, type Clients } from '../../http/http.ts';
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
import { ruleSetName } from '../../rules/rule-set.ts';
import type { Bot } from '../../store/apps/bot-directory.ts';
import { botParams } from '../call-schemas.ts';
import type { ApiServices, DialoutAnswer, Submission, SubmitResult } from '../services.ts';
import { parseDialout, type RequestContext } from './dialout-request.ts';
import {
  dialoutAnswerSchema,
  dialoutCheckSchema,
  dialoutQuery,
  dialoutSchema,
  idempotencyKey,
} from './dialout-schema.ts';

export type DialoutDependencies = {
  readonly services: Pick<ApiServices, 'intake' | 'rules' | 'keyProblem' | keyof RequestContext>;
  readonly clients: Clients;
  readonly metrics: Metrics | undefined;
};

export function registerDialout(server: ApiInstance, deps: DialoutDependencies): void {
  server.route({
    method: 'POST',
    url: '/api/1.1/public/bot/:botId/V2/contactcenter/dialout',
    onRequest: deps.clients.require(botRoute('Dialout')),
    schema: {
      operationId: 'dialOut',
      summary: 'Place an outbound call',
      description:
        'Responds as soon as the request is stored, before the call is placed. With an `Idempotency-Key`, a repeated request gets the first response again with `Idempotent-Replayed: true`, and no number is called twice.\n\nAfter a 503 of type `acceptance-unknown`, the request may or may not have been accepted, so repeat it with the same key. If you repeat it without a key, the phone may ring twice.\n\nAn app may have limits. If it may not dial the number, you get a 403 that names `target` or `bridge.to`. If it has reached its limit for simultaneous calls or for calls per day (in UTC), you get a 429 with `Retry-After`. Repeated requests do not count.\n\n`traceparent` and `tracestate` (W3C Trace Context) are passed on to all the call’s events and notifications.',
      tags: ['calls'],
      params: botParams,
      querystring: dialoutQuery,
      body: dialoutSchema,
      response: responses(
        'The request is stored and the call will be placed; or, with `check=true`, what the calling rules would decide',
        z.union([dialoutAnswerSchema, dialoutCheckSchema]),
        [400, 401, 403, 404, 406, 409, 413, 415, 429],
      ),
      ...authenticated,
    },
    // The schema is for documentation only. `parseDialout` checks the body, because some rules
    // concern several fields.
    validatorCompiler: exceptBody,
    // The intake may still accept the request after the handler has timed out. Errors thrown here
    // go to the server's own handler.
    errorHandler: (error, request) => {
      // If there is no body, the request never reached the intake.
      const isWithIntake = request.body !== undefined;
      if (error.code !== 'FST_ERR_HANDLER_TIMEOUT' || !isWithIntake) throw error;
      const hasKey = request.headers['idempotency-key'] !== undefined;
      throw acceptanceUnknown(hasKey, dependencyRetryAfterS, { cause: error });
    },
    handler: async (request, reply) => {
      const submission = await toSubmission(request, deps);
      if (request.query.check === 'true') return await checkAnswer(submission, deps);
      const result = await deps.services.intake.submit(submission);
      const answer = responseFor(result, submission);
      if (result.kind === 'replayed') void reply.header('idempotent-replayed', 'true');
      else deps.metrics?.callAccepted();
      return answer;
    },
  });
}

async function toSubmission(
  request: FastifyRequest,
  deps: DialoutDependencies,
): Promise<Submission> {
  const app = deps.clients.appOf(request);
  const bot = deps.clients.botOf(request);
  const ruleSet = await deps.services.rules.find(app.accountId, namedRules(request.body));
  const keyProblem = await recordingKeyProblem(request.body, bot, deps);
  const key = request.headers['idempotency-key'];
  const keyProblems = idempotencyKeyProblems(key);
  const parsed = parseDialout(request.body, { bot, app, ruleSet, keyProblem }, deps.services);
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
    ...(typeof key === 'string' ? { idempotency: { key, requestHash: parsed.requestHash() } } : {}),
  };
}

/** Made once, because zod compiles each new schema. */
const naming = z.object({ rules: ruleSetName });

/** Returns the rule set that the request names. `parseDialout` reports a name that isn't valid. */
function namedRules(body: unknown): string | undefined {
  return naming.safeParse(body).data?.rules;
}

/** Says why the key that the request or the bot names for recordings can't be used. */
async function recordingKeyProblem(
  body: unknown,
  bot: Pick<Bot, 'accountId' | 'recording'>,
  { services }: DialoutDependencies,
): Promise<string | undefined> {
  const { recording } = (body ?? {}) as { readonly recording?: unknown };
  const key = keyOf(recording, bot);
  return key === undefined ? undefined : await services.keyProblem(bot.accountId, key);
}

/** Says what the rules would decide about the call now. Nothing is stored. */
async function checkAnswer(
  submission: Submission,
  { services }: DialoutDependencies,
): Promise<z.output<typeof dialoutCheckSchema>> {
  const { accountId, request, limits } = submission;
  if (!targetsOf(request).every((target) => mayDial(limits, target))) {
    throw targetForbidden(submission);
  }
  const { decision, ruleSet, timeZones } = await services.rules.check({ accountId, request });
  const notBefore = decision.kind === 'wait' ? decision.until : decision.notBefore;
  return {
    permitted: decision.kind === 'permitted',
    ...(decision.kind === 'permitted' ? {} : { rule: decision.rule }),
    ...(notBefore === undefined ? {} : { notBefore: notBefore.toISOString() }),
    ...(ruleSet === undefined ? {} : { ruleSet: ruleSet.name, ruleSetVersion: ruleSet.version }),
    timeZones: [...timeZones],
  };
}

/** Returns errors for an invalid key. We can't ignore the key, because the client relies on it. */
function idempotencyKeyProblems(key: string | string[] | undefined): readonly MemberError[] {
  if (key === undefined) return [];
  const { error } = idempotencyKey.safeParse(key);
  return (error?.issues ?? []).map(({ message }) => ({ path: 'Idempotency-Key', message }));
}

/**
 * We don't know whether the request has been accepted. Sending it again is only safe with a key.
 */
function acceptanceUnknown(
  hasKey: boolean,
  retryAfterS: number,
  { cause }: { readonly cause: Error },
): ProblemError {
  const advice = hasKey
    ? 'Repeat it with the same Idempotency-Key.'
    : 'It had no Idempotency-Key: if you repeat it, the phone may ring twice.';
  return new ProblemError(
    'acceptance-unknown',
    `It is not known whether the request was accepted. ${advice}`,
    { retryAfterS, cause },
  );
}

const limitDetails = {
  callsAtOnce: 'The app has reached its limit of simultaneous calls.',
  callsPerDay: 'The app has reached its limit of calls for today, in UTC.',
} as const;

/**
 * Returns the fields with numbers that the app may not dial. If the limits have changed since the
 * intake rejected the request, and both numbers are now allowed, returns `target`.
 */
function forbiddenFields({ request, limits }: Submission): readonly string[] {
  const { target, bridge } = request;
  const isForbidden = (to: DialTarget): boolean => !mayDial(limits, to);
  const inBridge = bridge !== undefined && isForbidden(bridge.to) ? ['bridge.to'] : [];
  return isForbidden(target) || inBridge.length === 0 ? ['target', ...inBridge] : inBridge;
}

function targetForbidden(submission: Submission): ProblemError {
  return new ProblemError('forbidden', 'The app may not dial this number.', {
    errors: forbiddenFields(submission).map((path) => ({
      path,
      message: 'is not among the numbers that the app may dial',
    })),
  });
}

function responseFor(result: SubmitResult, submission: Submission): DialoutAnswer {
  switch (result.kind) {
    case 'accepted':
    case 'replayed':
      return result.answer;
    case 'conflict':
      throw new ProblemError(
        'idempotency-conflict',
        'The same Idempotency-Key was used before with another request.',
      );
    case 'full':
      throw new ProblemError('too-many-requests', 'Too many calls are waiting to be placed.', {
        retryAfterS: result.retryAfterS,
      });
    case 'target-forbidden':
      throw targetForbidden(submission);
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
