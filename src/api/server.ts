// The HTTP edge: one fastify instance with every route, to be listened on by its maker. Requests are checked here,
// and nowhere else; errors become problem documents here, and nowhere else.

import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Config } from '../config.ts';
import { createAuthenticator } from '../http/auth.ts';
import { registerDocsPage } from '../http/docs-page.ts';
import { createEventStreams, type EventStreams } from '../http/event-stream.ts';
import { registerHealthRoutes } from '../http/health-routes.ts';
import { type ApiInstance, type Caller, createCaller } from '../http/http.ts';
import { parseJsonBody } from '../http/json-body.ts';
import type { Metrics } from '../http/metrics.ts';
import {
  defaultBodyLimit,
  ProblemError,
  problemBody,
  problemHeaders,
  toProblem,
} from '../http/problem.ts';
import { closeUnusedConnections } from '../http/unused-connections.ts';
import { validatorCompiler } from '../http/validation.ts';
import { refuseWrongMethods } from '../http/wrong-method.ts';
import type { Logger } from '../lib/logger.ts';
import { registerAppWideRoutes } from './app-wide-routes.ts';
import { registerCallRoutes } from './call-routes.ts';
import { registerCommands } from './commands/command-routes.ts';

import { registerContext } from './context-route.ts';
import { registerDeadLetters } from './dead-letter-routes.ts';
import { registerDialout } from './dialout/dialout-route.ts';
import { registerEventRoutes } from './event-routes.ts';
import { registerOpenApi } from './openapi.ts';
import type { ApiServices } from './services.ts';
import { registerSounds } from './sound-routes.ts';
import { registerTwilioRoutes } from './twilio/twilio-routes.ts';

export type ApiServerOptions = {
  readonly services: ApiServices;
  readonly config: Pick<Config, 'http'>;
  readonly logger: Logger;
  readonly metrics?: Metrics;
  /** Routes of other modules, behind the same door. */
  readonly areas?: readonly RegisterRoutes[];
};

export type RegisterRoutes = (
  server: ApiInstance,
  caller: Caller,
  shared: { readonly services: ApiServices; readonly streams: EventStreams },
) => void;

const limits = {
  bodyLimit: defaultBodyLimit,
  /** A dial-out request is small: who needs longer to send one holds the connection on purpose. */
  requestTimeout: 10_000,
  /** Longer than the 60 s of common load balancers, so that they close idle connections and never write into a closed one. */
  keepAliveTimeout: 72_000,
  /** Storing a request takes milliseconds; past this the caller has given up, and should hear a 503 and not a reset. */
  handlerTimeout: 15_000,
  /** The longest bot id. Longer path segments match no route. */
  maxParamLength: 128,
};

export async function createApiServer(options: ApiServerOptions): Promise<ApiInstance> {
  const { services, config, logger, metrics } = options;
  const { maxParamLength, ...serverLimits } = limits;
  const base = fastify({
    ...serverLimits,
    routerOptions: { maxParamLength },
    // From the right of X-Forwarded-For, the first address that is none of theirs is the client's.
    trustProxy: config.http.trustedProxies.length > 0 && [...config.http.trustedProxies],
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    // Requests that are in while we close are answered like any other, by our own translator.
    return503OnClosing: false,
    // Node looks for requests over their time-out this often; its 30 s would let each live three times as long.
    http: { connectionsCheckingInterval: 2_000, headersTimeout: limits.requestTimeout },
    frameworkErrors: (error, request, reply) => {
      void answerProblem(toProblem(error), request as FastifyRequest, reply as FastifyReply);
    },
    clientErrorHandler: answerClientError,
  });
  const server: ApiInstance = base.withTypeProvider<ZodTypeProvider>();
  server.setValidatorCompiler(validatorCompiler);
  server.setSerializerCompiler(serializerCompiler);
  acceptOnlyJson(server);
  server.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error, request.routeOptions.bodyLimit);
    if (problem.status >= 500) {
      logger.error(
        { requestId: request.id, route: request.routeOptions.url, err: problem.cause ?? problem },
        'request failed',
      );
    }
    return answerProblem(problem, request, reply);
  });
  server.setNotFoundHandler((request, reply) =>
    answerProblem(
      new ProblemError('not-found', 'There is nothing at this address.'),
      request,
      reply,
    ),
  );
  server.addHook('preValidation', refuseBadQuery);
  closeUnusedConnections(server);
  observe(server, logger, metrics);
  refuseWrongMethods(server, maxParamLength);

  await registerOpenApi(server, { publicUrl: config.http.publicUrl });
  await registerDocsPage(server);
  const audience = config.http.publicUrl ?? `http://${config.http.host}:${config.http.port}`;
  const authenticate = createAuthenticator(services.apps, {
    audiences: ['offhook', audience, audience.replace(/\/$/, '')],
    logger,
  });
  const caller = createCaller(authenticate, services.bots);
  registerHealthRoutes(server, { health: services.health, logger, metrics });
  registerDialout(server, { services, caller, metrics });
  for (const register of [registerCommands, registerCallRoutes, registerSounds]) {
    register(server, { services, caller });
  }
  const streams = createEventStreams(server, {
    mayRead: async (appId) => (await services.apps.find(appId)) !== undefined,
    logger,
  });
  registerContext(server, { services, streams, caller });
  registerEventRoutes(server, { services, streams, caller });
  registerDeadLetters(server, { services, caller });
  registerAppWideRoutes(server, { services, caller });
  registerTwilioRoutes(server, { services, logger });
  for (const register of options.areas ?? []) register(server, caller, { services, streams });
  return server;
}

/** JSON as it is; everything else is a 415. */
function acceptOnlyJson(server: ApiInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) =>
      // Clients that set the content type on every request do so on a DELETE without a body too.
      request.method === 'DELETE' ? undefined : parseJsonBody(body),
  );
  server.addHook('preParsing', async (request, _reply, payload) => {
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding.toLowerCase() === 'identity') return payload;
    // What is not read may be encoded as it likes.
    if (request.routeOptions.schema?.body === undefined) return payload;
    throw new ProblemError('unsupported-media-type', 'Send the body without a content encoding.');
  });
}

/** The parser would leave what is not percent-encoded UTF-8 as it stands. In a path the router refuses it. */
async function refuseBadQuery({ url, routeOptions }: FastifyRequest): Promise<void> {
  const { schema, attachValidation } = routeOptions;
  if (schema?.querystring === undefined || attachValidation) return;
  try {
    decodeURIComponent(url);
  } catch (error) {
    throw undecodableQuery(error);
  }
}

function undecodableQuery(cause: unknown): ProblemError {
  return new ProblemError('invalid-request', 'The query is not percent-encoded UTF-8.', { cause });
}

/** Every answer has the request id, is not to be kept by caches unless its route says so, and is measured. Paths stay out of logs: routes say enough. */
function observe(server: ApiInstance, logger: Logger, metrics: Metrics | undefined): void {
  server.addHook('onRequest', async (request, reply) => {
    // What is said of calls, keys and conversations is not for the caches of proxies and browsers (RFC 9111 section 5.2.2.5).
    void reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store' });
  });
  server.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    const durationMs = reply.elapsedTime;
    metrics?.httpRequest(request.method, route, reply.statusCode, durationMs / 1_000);
    logger.debug(
      {
        requestId: request.id,
        method: request.method,
        route,
        status: reply.statusCode,
        durationMs,
      },
      'request answered',
    );
  });
}

function answerProblem(
  problem: ProblemError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return reply
    .code(problem.status)
    .headers({ ...problemHeaders(problem), 'x-request-id': request.id })
    .send(problemBody(problem, request.id));
}

/** What Node's parser refuses never becomes a request: the answer is written by hand, and the connection ends. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = clientProblem(error.code);
  const requestId = randomUUID();
  const body = problemBody(problem, requestId);
  const headers = {
    ...problemHeaders(problem),
    'x-request-id': requestId,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`,
  );
}

function clientProblem(code: string | undefined): ProblemError {
  switch (code ?? '') {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ProblemError('request-timeout', 'The request did not arrive in time.');
    case 'HPE_HEADER_OVERFLOW':
      return new ProblemError('headers-too-large', 'The headers are larger than 16 KiB.');
    default:
      return new ProblemError('invalid-request', 'This is not HTTP/1.1 as we understand it.');
  }
}
