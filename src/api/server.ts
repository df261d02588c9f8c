// Creates the HTTP server. It is a single fastify instance with all routes and everything that they
// share, i.e. request checks, authentication, problem documents and metrics. The server starts
// listening in `src/app`.

import { randomUUID } from 'node:crypto';
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Config } from '../config.ts';
import { registerAliveRoute } from '../http/alive-route.ts';
import { createAuthenticator } from '../http/auth.ts';
import { limitBodyTime } from '../http/body-time.ts';
import { type ClientFaults, createClientFaults } from '../http/client-faults.ts';
import { closeInTime } from '../http/closing.ts';
import { registerDocsPage } from '../http/docs-page.ts';
import { createEventStreams, type EventStreams } from '../http/event-stream.ts';
import { registerHealthRoutes } from '../http/health-routes.ts';
import { type ApiInstance, type Clients, createClients } from '../http/http.ts';
import { parseJsonBody } from '../http/json-body.ts';
import type { Metrics } from '../http/metrics.ts';
import { answerProblem, defaultBodyLimit, ProblemError, toProblem } from '../http/problem.ts';
import { answerInTime } from '../http/response-time.ts';
import { validatorCompiler } from '../http/validation.ts';
import type { Logger } from '../lib/logger.ts';
import { registerAppWideRoutes } from './app-wide-routes.ts';
import { registerCallLists } from './call-lists.ts';
import { registerCallRoutes } from './call-routes.ts';
import { registerCommands } from './commands/command-routes.ts';
import { registerContext } from './context-route.ts';
import { registerDeadLetters } from './dead-letter-routes.ts';
import { registerDialout } from './dialout/dialout-route.ts';
import { registerEventRoutes } from './event-routes.ts';
import { registerOpenApi } from './openapi.ts';
import { registerRecordings } from './recording-routes.ts';
import { registerCampaigns } from './rules/campaign-routes.ts';
import { registerSuppressionImport } from './rules/import-route.ts';
import { registerPersons } from './rules/person-routes.ts';
import { registerRecords } from './rules/record-routes.ts';
import { registerRuleSets } from './rules/rule-routes.ts';
import { registerSuppressions } from './rules/suppression-routes.ts';
import type { ApiServices } from './services.ts';
import { registerSounds } from './sound-routes.ts';
import { registerTwilioRoutes } from './twilio/twilio-routes.ts';

export type ApiServerOptions = {
  readonly services: ApiServices;
  readonly config: Pick<Config, 'http'>;
  readonly logger: Logger;
  readonly metrics?: Metrics;
  /**
   * Whether the gateway is draining, i.e. still serving requests but waiting for its last calls to
   * end.
   */
  readonly isDraining?: () => boolean;
  /** Answers other nodes' questions whether this process is alive (`src/http/alive-route.ts`). */
  readonly isAlive?: (question: unknown) => object | undefined;
  /**
   * Maximum time for receiving a request's headers, and then for its body, except for an import.
   * Default: 10,000.
   */
  readonly requestTimeoutMs?: number;
  /** Maximum time for a response, except where a route says otherwise. Default: 15,000. */
  readonly responseTimeoutMs?: number;
  /** Registers other modules' routes, which use the same authentication. */
  readonly areas?: readonly RegisterRoutes[];
};

export type RegisterRoutes = (
  server: ApiInstance,
  clients: Clients,
  shared: { readonly services: ApiServices; readonly streams: EventStreams },
) => void;

const limits = {
  bodyLimit: defaultBodyLimit,
  /**
   * Common load balancers use 60 s. Our time-out is longer, so they close idle connections first
   * and never send a request on a connection that we have just closed.
   */
  keepAliveTimeout: 72_000,
  /** The longest bot id. Longer path segments match no route. */
  maxParamLength: 128,
};

/** Routes that need nothing but the services and the clients. */
const simpleRoutes = [
  registerCommands,
  registerCallLists,
  registerCallRoutes,
  registerSounds,
  registerRecordings,
  registerRuleSets,
  registerSuppressions,
  registerRecords,
  registerPersons,
  registerSuppressionImport,
  registerCampaigns,
];

/** Requests are small, so a client that needs longer to send one usually does so on purpose. */
const defaultRequestTimeoutMs = 10_000;
/** Storing a request takes milliseconds, so we respond with 503 if it takes this long. */
const defaultResponseTimeoutMs = 15_000;

export async function createApiServer(options: ApiServerOptions): Promise<ApiInstance> {
  const { services, config, logger, metrics, isDraining } = options;
  const { maxParamLength, ...serverLimits } = limits;
  const requestTimeout = options.requestTimeoutMs ?? defaultRequestTimeoutMs;
  const faults = createClientFaults(logger);
  const base = fastify({
    ...serverLimits,
    // Node can't exempt a single request, so `limitBodyTime` bounds the bodies instead.
    requestTimeout: 0,
    routerOptions: { maxParamLength },
    // The client's address is the last address in X-Forwarded-For that doesn't belong to a proxy.
    trustProxy: config.http.trustedProxies.length > 0 && [...config.http.trustedProxies],
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    // `closeInTime` responds to requests that arrive while the server is closing.
    return503OnClosing: false,
    // How often Node looks for requests that have exceeded their time-out. With its default of 30
    // s, a request could last three times longer than allowed.
    http: { connectionsCheckingInterval: requestTimeout / 5, headersTimeout: requestTimeout },
    frameworkErrors: (error, request, reply) => {
      void answerProblem(toProblem(error), request as FastifyRequest, reply as FastifyReply);
    },
    clientErrorHandler: faults.refuse,
  });
  const server: ApiInstance = base.withTypeProvider<ZodTypeProvider>();
  server.setValidatorCompiler(validatorCompiler);
  server.setSerializerCompiler(serializerCompiler);
  acceptOnlyJson(server);
  answerErrors(server, faults, logger);
  observe(server, logger, metrics);
  answerInTime(server, options.responseTimeoutMs ?? defaultResponseTimeoutMs);
  closeInTime(server);
  limitBodyTime(server.server, requestTimeout, faults.refuse);
  if (isDraining !== undefined) server.addHook('onRequest', closeWhileDraining(isDraining));
  faults.watch(server);
  server.addHook('preValidation', rejectBadQuery);
  rejectWrongMethods(server, maxParamLength);

  await registerOpenApi(server, { publicUrl: config.http.publicUrl });
  await registerDocsPage(server);
  const audience = config.http.publicUrl ?? `http://${config.http.host}:${config.http.port}`;
  const authenticate = createAuthenticator(services.apps, {
    audiences: ['offhook', audience, audience.replace(/\/$/, '')],
    logger,
  });
  const clients = createClients(authenticate, services.bots);
  const { health, servers } = services;
  registerHealthRoutes(server, { health, servers, logger, metrics });
  if (options.isAlive !== undefined) registerAliveRoute(server, options.isAlive);
  registerDialout(server, { services, clients, metrics });
  for (const register of simpleRoutes) register(server, { services, clients });
  const streams = createEventStreams(server, {
    mayRead: async (appId) => (await services.apps.find(appId)) !== undefined,
    logger,
  });
  registerContext(server, { services, streams, clients });
  registerEventRoutes(server, { services, streams, clients });
  registerDeadLetters(server, { services, clients });
  registerAppWideRoutes(server, { services, clients });
  registerTwilioRoutes(server, { services, faults, logger });
  for (const register of options.areas ?? []) register(server, clients, { services, streams });
  return server;
}

function answerErrors(server: ApiInstance, faults: ClientFaults, logger: Logger): void {
  server.setErrorHandler((error, request, reply) => {
    const problem =
      faults.problemFor(request, error) ?? toProblem(error, request.routeOptions.bodyLimit);
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
}

/** Accepts only JSON without a content encoding, and rejects any other body with 415. */
function acceptOnlyJson(server: ApiInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) =>
      // Some clients set the content type on every request, even on a DELETE without a body.
      request.method === 'DELETE' ? undefined : parseJsonBody(body),
  );
  server.addHook('preParsing', async (request, _reply, payload) => {
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding.toLowerCase() === 'identity') return payload;
    // The encoding doesn't matter if we never read the body.
    if (request.routeOptions.schema?.body === undefined) return payload;
    throw new ProblemError('unsupported-media-type', 'Send the body without a content encoding.');
  });
}

/**
 * Rejects queries that aren't percent-encoded UTF-8, because the parser would pass the raw bytes
 * on. For paths, the router already does this.
 */
async function rejectBadQuery({ url, routeOptions }: FastifyRequest): Promise<void> {
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

/**
 * Closes each connection after the response while the gateway is draining, so that the client's
 * next request opens a new connection to a different gateway.
 */
function closeWhileDraining(isDraining: () => boolean) {
  return async (_request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (isDraining()) void reply.header('connection', 'close');
  };
}

/**
 * Adds the request id and `no-store` to every response, and measures the response time. Routes may
 * override `no-store`. We log the route but never the path.
 */
function observe(server: ApiInstance, logger: Logger, metrics: Metrics | undefined): void {
  server.addHook('onRequest', async (request, reply) => {
    // Proxies and browsers must not cache calls, keys and conversations (RFC 9111 section 5.2.2.5).
    void reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store' });
  });
  const measured = new WeakSet<FastifyReply>();
  const measure = (request: FastifyRequest, reply: FastifyReply): void => {
    if (measured.has(reply)) return;
    measured.add(reply);
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
  };
  server.addHook('onResponse', async (request, reply) => measure(request, reply));
  // Fastify doesn't call `onResponse` if the client has disconnected before the response.
  server.addHook('onSend', async (request, reply) => {
    if (reply.raw.destroyed) measure(request, reply);
    else reply.raw.once('close', () => measure(request, reply));
  });
}

type Address = { readonly pattern: RegExp; readonly methods: Set<string> };

/**
 * Responds to a wrong method with a 405 that names the allowed ones (RFC 9110 section 15.5.6). The
 * router only reports that there's no such route, so this hook checks the path against all routes.
 * Call this before registering any route.
 */
function rejectWrongMethods(server: ApiInstance, maxParamLength: number): void {
  const addresses = new Map<string, Address>();
  server.addHook('onRoute', ({ url, method }) => {
    const address = addresses.get(url) ?? {
      pattern: patternOf(url, maxParamLength),
      methods: new Set(),
    };
    addresses.set(url, address);
    for (const name of [method].flat()) address.methods.add(name);
  });
  // We can use `onRequest`, because there's no need to read the body.
  server.addHook('onRequest', async (request) => {
    if (!request.is404) return;
    const [path = ''] = request.url.split('?');
    const allow = [...addresses.values()].flatMap(({ pattern, methods }) =>
      pattern.test(path) ? [...methods] : [],
    );
    if (allow.length === 0) return;
    throw new ProblemError('method-not-allowed', 'The address does not accept this method.', {
      allow: [...new Set(allow)].sort(),
    });
  });
}

/**
 * Turns a route in the router's notation into a pattern. Supports parameters and a trailing
 * wildcard.
 */
function patternOf(url: string, maxParamLength: number): RegExp {
  const source = url
    .replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll(/:\w+/g, `[^/]{1,${maxParamLength}}`);
  return new RegExp(`^${source}$`);
}
