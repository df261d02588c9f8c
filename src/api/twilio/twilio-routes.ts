// Serves two requests from Twilio's REST API, for programs that use Twilio's libraries:
//
//   GET  /2010-04-01/Accounts/{AC…}/Calls/{CA…}.json                    reads a call
//   POST /2010-04-01/Accounts/{AC…}/Calls/{CA…}.json  Status=completed  hangs up, as DELETE does
//
// The paths, the form and the errors are the ones those libraries expect.

import { timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { ClientFaults } from '../../http/client-faults.ts';
import { createFailedAuthentications } from '../../http/failed-authentications.ts';
import type { ApiInstance } from '../../http/http.ts';
import { dependencyRetryAfterS, problemHeaders, toProblem } from '../../http/problem.ts';
import type { CallDetails } from '../../interactions/call-queries.ts';
import type { Logger } from '../../lib/logger.ts';
import { hangUp } from '../call-routes.ts';
import type { ApiServices, StreamedCall } from '../services.ts';
import { callResource, callResourceSchema, endingCallSchema } from './call-resource.ts';

type TwilioServices = Pick<ApiServices, 'apps' | 'calls' | 'commands' | 'streams'>;
type Dependencies = {
  readonly services: TwilioServices;
  readonly faults: Pick<ClientFaults, 'problemFor'>;
  readonly logger: Logger;
};

const prefix = '/2010-04-01';
const path = '/Accounts/:accountSid/Calls/:callSid.json';

const params = z.object({
  accountSid: z.string().describe('`AC…`, the `accountSid` of the stream'),
  callSid: z
    .string()
    .describe(
      '`CA…`, the stream’s `callSid`. For a call without a stream: `CA` plus the hex digits of the call id',
    ),
});

const form = z
  .object({ Status: z.literal('completed') })
  .meta({ id: 'TwilioCallUpdate', examples: [{ Status: 'completed' }] });

const errorSchema = z
  .object({ code: z.number().int(), message: z.string(), status: z.number().int() })
  .meta({
    id: 'TwilioError',
    examples: [{ code: 20_404, message: 'There is no such call, or it has ended', status: 404 }],
  });

/** The HTTP status and the Twilio error code for each kind of error. */
const errors = {
  invalid: { status: 400, code: 20_001 },
  unauthenticated: { status: 401, code: 20_003 },
  unknown: { status: 404, code: 20_404 },
  tooManyFailures: { status: 429, code: 20_429 },
  unreachable: { status: 503, code: 20_503 },
} as const;

/** An error that the client receives in Twilio's format. */
class TwilioError extends Error {
  readonly kind: keyof typeof errors;
  readonly retryAfterS: number | undefined;

  constructor(kind: keyof typeof errors, message: string, retryAfterS?: number) {
    super(message);
    this.kind = kind;
    this.retryAfterS = retryAfterS;
  }
}

/** Tells programs that use Twilio's library to place or list calls which paths they should use. */
const notServed =
  "In Twilio's form, Offhook only reads one call (GET) or hangs it up (POST with Status=completed). POST /api/1.1/public/bot/{botId}/V2/contactcenter/dialout places calls, GET /api/public/bot/{botId}/calls lists them.";

export function registerTwilioRoutes(
  server: ApiInstance,
  { services, faults, logger }: Dependencies,
): void {
  const authenticate = createAuthentication(services);
  void server.register(
    (scope, _options, done) => {
      scope.addContentTypeParser(
        'application/x-www-form-urlencoded',
        { parseAs: 'string' },
        async (_request: FastifyRequest, body: string) =>
          Object.fromEntries(new URLSearchParams(body)),
      );
      scope.setErrorHandler((error, request, reply) =>
        answerError(faults.problemFor(request, error) ?? error, { request, reply, logger }),
      );
      scope.setNotFoundHandler((_request, reply) =>
        reply.code(404).send({ ...errors.unknown, message: notServed }),
      );
      // Don't validate here, because the handlers first check the credentials and then the form.
      // They also report errors in Twilio's format.
      scope.setValidatorCompiler(() => (value: unknown) => ({ value }));
      scope.get(path, { schema: schemas.read }, async (request) => {
        const call = await authenticate(request);
        return callResource(await detailsOf(services, call), call);
      });
      scope.post(path, { schema: schemas.hangUp }, async (request) => {
        const call = await authenticate(request);
        checkForm(request.body);
        await end(services, call);
        return await hangUpAnswer(services, call);
      });
      done();
    },
    { prefix },
  );
}

/** A call and the app that placed it, with the ids that Twilio's libraries use. */
type TwilioCall = StreamedCall & { readonly callSid: string; readonly accountId: string };

/**
 * Finds the call and checks the client's credentials.
 *
 * @throws TwilioError if the call is unknown or the credentials are wrong. Both cases get the same
 * error, so a wrong guess reveals nothing
 */
function createAuthentication({ apps, streams }: TwilioServices) {
  const failures = createFailedAuthentications();
  return async ({ params: given, headers, ip }: FastifyRequest): Promise<TwilioCall> => {
    const { accountSid = '', callSid = '' } = given as Readonly<Record<string, string>>;
    const isSid = /^CA[0-9a-f]{32}$/.test(callSid);
    const call = isSid ? await streams.callOf(callSid) : undefined;
    const app = call === undefined ? undefined : await apps.find(call.appId);
    const secrets = app?.streamSecrets ?? [];
    if (
      call?.accountSid === accountSid &&
      app !== undefined &&
      isAuthentic(headers.authorization, accountSid, secrets)
    ) {
      return { ...call, callSid, accountId: app.accountId };
    }
    const retryAfterS = failures.failed(ip);
    if (retryAfterS === undefined) throw new TwilioError('unauthenticated', 'Authenticate');
    throw new TwilioError('tooManyFailures', 'Too many requests with bad credentials', retryAfterS);
  };
}

/** Compares the credentials with each valid secret, in constant time. */
function isAuthentic(
  header: string | undefined,
  accountSid: string,
  secrets: readonly string[],
): boolean {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/=_-]+) *$/i.exec(header ?? '') ?? [];
  const given = Buffer.from(encoded, 'base64');
  const matches = secrets.map((secret) => {
    const wanted = Buffer.from(`${accountSid}:${secret}`);
    return wanted.length === given.length && timingSafeEqual(wanted, given);
  });
  return matches.includes(true);
}

async function detailsOf(
  { calls }: TwilioServices,
  { accountId, callId }: TwilioCall,
): Promise<CallDetails> {
  const details = await calls.details({ accountId, botIds: 'all' }, callId);
  // This can happen if retention has just removed the call.
  if (details === undefined) throw new TwilioError('unknown', 'There is no such call');
  return details;
}

async function end({ commands }: TwilioServices, { callId, appId }: TwilioCall): Promise<void> {
  const state = await hangUp(commands, callId, `bot of ${appId}`);
  if (state === 'ended') throw new TwilioError('unknown', 'There is no such call, or it has ended');
  if (state !== undefined) return;
  const message = 'The call cannot be reached at the moment.';
  throw new TwilioError('unreachable', message, dependencyRetryAfterS);
}

/**
 * Returns the response to a hang-up. The call ends a moment later, so `status` already contains the
 * status that the call will have by then. We report success even if the call couldn't be read. A
 * client that repeated the request would otherwise get a 404, because the call has ended.
 */
async function hangUpAnswer(services: TwilioServices, call: TwilioCall) {
  const details = await detailsOf(services, call).catch(() => undefined);
  if (details === undefined)
    return { sid: call.callSid, account_sid: call.accountSid, status: 'completed' };
  const status = details.answeredAt === undefined ? 'canceled' : 'completed';
  return { ...callResource(details, call), status };
}

/** @throws TwilioError that names any parameters that Offhook doesn't support */
function checkForm(body: unknown): void {
  const members = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const others = members.map(([name]) => name).filter((name) => name !== 'Status');
  if (others.length > 0) {
    const names = others.join(', ').slice(0, 200);
    throw new TwilioError('invalid', `Only Status is supported here, not ${names}`);
  }
  if (!members.some(([, value]) => value === 'completed'))
    throw new TwilioError('invalid', 'Status must be completed');
}

type Answering = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly logger: Logger;
};

function answerError(error: unknown, { request, reply, logger }: Answering): FastifyReply {
  if (error instanceof TwilioError) {
    const { status, code } = errors[error.kind];
    if (status === 401) void reply.header('www-authenticate', 'Basic realm="streamSecret"');
    if (error.retryAfterS !== undefined)
      void reply.header('retry-after', String(error.retryAfterS));
    return reply.code(status).send({ code, message: error.message, status });
  }
  const problem = toProblem(error, request.routeOptions.bodyLimit);
  const { status, message } = problem;
  if (status >= 500) {
    const route = request.routeOptions.url;
    logger.error({ requestId: request.id, route, err: problem.cause ?? problem }, 'request failed');
  }
  return (
    reply
      .code(status)
      .headers(problemHeaders(problem))
      // Twilio sends errors as plain JSON, with 20,000 plus the status as the code.
      .type('application/json')
      .send({ code: 20_000 + status, message, status })
  );
}

const descriptions = {
  400: 'The form contains parameters other than `Status=completed`',
  401: 'The credentials do not belong to the call, or there is no such call',
  404: 'There is no such call, or it has ended',
  413: 'The form is too large',
  415: 'The body is not a form',
  429: 'Too many requests with bad credentials came from the same address; see `Retry-After`',
  500: 'The gateway failed to handle the request',
  503: 'The call or the database cannot be reached at the moment; see `Retry-After`',
} as const;

function answersOf(
  description: string,
  schema: typeof callResourceSchema | typeof endingCallSchema,
  failures: readonly (keyof typeof descriptions)[],
) {
  const content = { 'application/json': { schema: errorSchema } };
  const failed = failures.map(
    (status) => [status, { description: descriptions[status], content }] as const,
  );
  return {
    200: { description, content: { 'application/json': { schema } } },
    ...Object.fromEntries(failed),
  };
}

const common = { tags: ['twilio'], params, security: [{ streamSecret: [] }] };
const schemas = {
  read: {
    ...common,
    operationId: 'readCallAsTwilio',
    summary: "Read a call as in Twilio's REST API",
    response: answersOf('The call', callResourceSchema, [401, 404, 429, 500, 503]),
  },
  hangUp: {
    ...common,
    operationId: 'hangUpAsTwilio',
    summary: "Hang up a call as in Twilio's REST API",
    description:
      '`Status=completed` ends the call whatever its state, as `DELETE` does. If the update contains any other parameters, you get a 400 that names them.',
    consumes: ['application/x-www-form-urlencoded'],
    body: form,
    response: answersOf(
      'The call is being hung up; `status` is the status that it will have in a moment',
      endingCallSchema,
      [400, 401, 404, 413, 415, 429, 500, 503],
    ),
  },
};
