// Serves `/docs`: a page that shows the OpenAPI document and sends requests. It works offline: the
// gateway serves everything that the page loads. The page contains no secrets; it asks the user for
// the credentials that a request needs.

import swaggerUi from '@fastify/swagger-ui';
import type { ApiInstance } from './http.ts';

/**
 * The page may use its own scripts and styles and send requests to its own origin, and nothing
 * else.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
};

/**
 * Sets `Accept`, which Swagger UI would not set to JSON. The function runs in the browser, which
 * receives it as text.
 */
function acceptJson(request: { [name: string]: unknown }) {
  const headers = request['headers'] as object;
  return { ...request, headers: { ...headers, accept: 'application/json' } };
}

type Parameter = { readonly name: string; readonly schema?: { readonly pattern?: string } };
type Operation = { readonly parameters?: readonly Parameter[]; readonly requestBody?: unknown };
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** Removes the parts of the document that would keep the page from sending a request. */
function sendablePaths(paths: Paths) {
  const entries = Object.entries(paths).map(([path, operations]) => [
    path,
    Object.fromEntries(
      Object.entries(operations).map(([method, operation]) => [
        method,
        sendable(method, operation),
      ]),
    ),
  ]);
  return Object.fromEntries(entries) as Paths;
}

function sendable(method: string, { requestBody, parameters, ...operation }: Operation): Operation {
  return {
    ...operation,
    // Browsers do not send a body with a GET.
    ...(requestBody === undefined || method === 'get' ? {} : { requestBody }),
    ...(parameters === undefined
      ? {}
      : {
          // `acceptJson` sets this header. The page would ask for a value and then not send it.
          parameters: parameters.filter(({ name }) => name !== 'accept').map(withoutUnicodePattern),
        }),
  };
}

/**
 * Removes a pattern with `\p{…}`. The page compiles patterns without the flag `u`, takes `\p` for
 * the letter p, and so refuses valid values. The gateway still checks the pattern.
 */
function withoutUnicodePattern(parameter: Parameter): Parameter {
  const { pattern, ...schema } = parameter.schema ?? {};
  return pattern?.includes('\\p{') ? { ...parameter, schema } : parameter;
}

export async function registerDocsPage(server: ApiInstance): Promise<void> {
  // For people who know only the gateway's address. The redirect is relative, because a proxy may
  // serve the gateway under a path.
  server.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('docs'));
  await server.register((scope, _options, done) => {
    scope.addHook('onSend', async (_request, reply) => {
      void reply.headers(headers);
    });
    void scope.register(swaggerUi, {
      routePrefix: '/docs',
      theme: { title: 'Offhook API' },
      uiConfig: {
        layout: 'BaseLayout',
        docExpansion: 'list',
        displayRequestDuration: true,
        persistAuthorization: false,
        requestInterceptor: acceptJson,
      },
      // Requests go to the page's own origin, whatever the public URL is: the page's policy allows
      // no other origin.
      transformSpecification: (document) => ({
        ...document,
        servers: [{ url: '..' }],
        paths: sendablePaths(document['paths'] as Paths),
      }),
    });
    done();
  });
}
