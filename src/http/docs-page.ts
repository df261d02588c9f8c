// /docs: the OpenAPI document as a page to try the API on. Everything that it loads comes from here, so that it works without
// the Internet; it holds nothing secret, and asks for the credentials that a request needs.

import swaggerUi from '@fastify/swagger-ui';
import type { ApiInstance } from './http.ts';

/** What the page may do: its own scripts and styles, requests to where it came from, and nothing else. */
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

/** Runs in the browser, where it arrives as text. The page itself would say that it takes anything, which is not enough. */
function acceptJson(request: { [name: string]: unknown }) {
  const headers = request['headers'] as object;
  return { ...request, headers: { ...headers, accept: 'application/json' } };
}

type Parameter = { readonly name: string; readonly schema?: { readonly pattern?: string } };
type Operation = { readonly parameters?: readonly Parameter[]; readonly requestBody?: unknown };
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** Without what keeps the page from sending a request. */
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
    // No browser sends the body of a GET.
    ...(requestBody === undefined || method === 'get' ? {} : { requestBody }),
    ...(parameters === undefined
      ? {}
      : {
          // `acceptJson` sends it; the page would want it typed in, and send nothing of it.
          parameters: parameters.filter(({ name }) => name !== 'accept').map(checkable),
        }),
  };
}

/** The page reads patterns without the flag `u`, and so `\p{Cc}` as letters that it refuses. The service checks them anyway. */
function checkable(parameter: Parameter): Parameter {
  const { pattern, ...schema } = parameter.schema ?? {};
  return pattern?.includes('\\p{') ? { ...parameter, schema } : parameter;
}

export async function registerDocsPage(server: ApiInstance): Promise<void> {
  // Where a person starts who has the address and nothing else. Relative, for a proxy that puts us under a path.
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
      // Requests go to where the page came from, whatever the public URL says: its policy allows nothing else.
      transformSpecification: (document) => ({
        ...document,
        servers: [{ url: '..' }],
        paths: sendablePaths(document['paths'] as Paths),
      }),
    });
    done();
  });
}
