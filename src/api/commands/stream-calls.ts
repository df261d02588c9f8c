// The request by which bots hang up that were written for Twilio: `POST /2010-04-01/Accounts/{AC…}/Calls/{CA…}.json` with
// `Status=completed`. Their libraries choose path, form and errors; it does what DELETE does, and nothing else.

import { timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createFailedAuthentications } from '../../http/failed-authentications.ts';
import type { ApiInstance } from '../../http/http.ts';
import { dependencyRetryAfterS } from '../../http/problem.ts';
import type { ApiServices } from '../services.ts';

const path = '/2010-04-01/Accounts/:accountSid/Calls/:callFile';
const callFilePattern = /^(CA[0-9a-f]{32})\.json$/;

/** As bots' libraries read them. */
const errors = {
  unauthenticated: { status: 401, code: 20_003, message: 'Authenticate' },
  unknown: { status: 404, code: 20_404, message: 'The call is not there, or has ended' },
  slowDown: { status: 429, code: 20_429, message: 'Too many requests with bad credentials' },
  unreachable: { code: 20_503, message: 'The call cannot be reached just now.', status: 503 },
} as const;

type Answer = { readonly status: number; readonly body: object; readonly retryAfterS?: number };

export function registerStreamCalls(server: ApiInstance, services: CallServices): void {
  const failures = createFailedAuthentications();
  void server.register((scope, _options, done) => {
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string' },
      async (_request: FastifyRequest, body: string) =>
        Object.fromEntries(new URLSearchParams(body)),
    );
    scope.post(
      path,
      // Not for people who write against this API: theirs is DELETE.
      { schema: { hide: true } },
      async (request: FastifyRequest, reply: FastifyReply) => {
        const { status, body, retryAfterS } = await answer(request, services, () =>
          failures.failed(request.ip),
        );
        if (status === 401) void reply.header('www-authenticate', 'Basic realm="streamSecret"');
        if (retryAfterS !== undefined) void reply.header('retry-after', String(retryAfterS));
        return await reply.code(status).send(body);
      },
    );
    done();
  });
}

type CallServices = Pick<ApiServices, 'apps' | 'control' | 'streams'>;

async function answer(
  { params, headers, body }: FastifyRequest,
  { apps, control, streams }: CallServices,
  failed: () => number | undefined,
): Promise<Answer> {
  const { accountSid = '', callFile = '' } = params as Readonly<Record<string, string>>;
  const [, callSid] = callFilePattern.exec(callFile) ?? [];
  const call = callSid === undefined ? undefined : await streams.callOf(callSid);
  const app = call === undefined ? undefined : await apps.find(call.appId);
  if (
    call?.accountSid !== accountSid ||
    !isAuthentic(headers.authorization, accountSid, app?.streamSecrets ?? [])
  ) {
    // A call that never was answers as bad credentials do: a client that has none learns nothing of calls.
    const retryAfterS = failed();
    return retryAfterS === undefined
      ? failure('unauthenticated')
      : { ...failure('slowDown'), retryAfterS };
  }
  const wrong = wrongMembers(body);
  if (wrong !== undefined)
    return { status: 400, body: { code: 20_001, message: wrong, status: 400 } };
  switch (await control.end(call.callId, `bot of ${call.appId}`)) {
    case 'ending':
      return { status: 200, body: { sid: callSid, status: 'completed' } };
    case 'ended':
    case 'unknown':
      return failure('unknown');
    case 'unreachable':
      return { ...failure('unreachable'), retryAfterS: dependencyRetryAfterS };
  }
}

function failure(kind: keyof typeof errors): Answer {
  const { status, ...body } = errors[kind];
  return { status, body: { ...body, status } };
}

/** Each live secret is compared, and in a time that says nothing of it. */
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

function wrongMembers(body: unknown): string | undefined {
  const members = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const others = members.map(([name]) => name).filter((name) => name !== 'Status');
  if (others.length > 0) return `Only Status is taken here, not ${others.join(', ').slice(0, 200)}`;
  return members.some(([, value]) => value === 'completed')
    ? undefined
    : 'Status must be completed';
}
