// Serves `/docs`, a page that shows the OpenAPI document and sends requests. The gateway serves
// everything that the page loads, so it also works offline. The page doesn't contain any secrets:
// users enter the credentials that a request needs.

import swaggerUi from '@fastify/swagger-ui';
import type { ApiInstance } from './http.ts';

/** The page may only use its own scripts and styles, and only send requests to its own origin. */
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
 * Sets `Accept` to JSON, which Swagger UI doesn't do on its own. This function is sent to the
 * browser as text and runs there.
 */
function acceptJson(request: { [name: string]: unknown }) {
  const headers = request['headers'] as object;
  return { ...request, headers: { ...headers, accept: 'application/json' } };
}

type Parameter = { readonly name: string; readonly schema?: object };
type Operation = { readonly parameters?: readonly Parameter[]; readonly requestBody?: unknown };
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** Removes the parts of the document that would prevent the page from sending a request. */
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
    // Browsers don't send a body with a GET.
    ...(requestBody === undefined || method === 'get' ? {} : { requestBody }),
    ...(parameters === undefined
      ? {}
      : {
          // `acceptJson` sets this header. Otherwise the page asks for a value that it then doesn't
          // send.
          parameters: parameters.filter(({ name }) => name !== 'accept').map(withoutUnicodePattern),
        }),
  };
}

/**
 * Removes a pattern that contains `\p{…}`. The page compiles patterns without the `u` flag, which
 * makes `\p` match the letter p, so the page would reject valid values. The gateway still checks
 * the pattern.
 */
function withoutUnicodePattern(parameter: Parameter): Parameter {
  return JSON.parse(JSON.stringify(parameter), (name, value: unknown) =>
    name === 'pattern' && typeof value === 'string' && value.includes('\\p{') ? undefined : value,
  ) as Parameter;
}

export async function registerDocsPage(server: ApiInstance): Promise<void> {
  // Redirect people who only know the gateway's address. The redirect is relative because a proxy
  // may serve the gateway under a path.
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
      // Send requests to the page's own origin even if the public URL differs, because the page's
      // policy doesn't allow any other origin.
      transformSpecification: (document) => ({
        ...document,
        servers: [{ url: '..' }],
        paths: sendablePaths(document['paths'] as Paths),
      }),
    });
    done();
  });
}
