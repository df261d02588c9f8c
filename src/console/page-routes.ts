// Serves the page and the files that it loads. They contain no secrets and are the same for all
// users.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiInstance } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import type { Asset, Assets } from './assets.ts';
import { createGuard } from './sessions.ts';

const headers = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
};

export function registerPage(
  server: ApiInstance,
  assets: () => Promise<Assets>,
  publicUrl: string | undefined,
): void {
  const onRequest = createGuard(publicUrl);

  server.route({
    method: 'GET',
    url: '/console',
    onRequest,
    schema: { hide: true },
    handler: async (request, reply) => {
      const { page, contentSecurityPolicy } = await assets();
      void reply.headers({
        ...headers,
        'content-security-policy': contentSecurityPolicy,
        'cache-control': 'no-cache',
      });
      return send(request, reply, page);
    },
  });

  // The page's relative addresses assume `/console` without a trailing slash. The redirect is
  // relative too, because a proxy may serve the gateway under a path.
  server.route({
    method: 'GET',
    url: '/console/',
    onRequest,
    schema: { hide: true },
    handler: (_request, reply) => reply.redirect('../console', 308),
  });

  server.route({
    method: 'GET',
    url: '/console/assets/*',
    onRequest,
    schema: { hide: true },
    handler: async (request, reply) => {
      const path = (request.params as { readonly '*': string })['*'];
      const asset = (await assets()).files.get(`assets/${path}`);
      if (asset === undefined) {
        throw new ProblemError('not-found', 'There is nothing at this address.');
      }
      void reply.headers({ ...headers, 'cache-control': 'public, max-age=31536000, immutable' });
      return send(request, reply, asset);
    },
  });
}

function send(request: FastifyRequest, reply: FastifyReply, asset: Asset): FastifyReply {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  void reply.type(asset.type);
  if (/\bbr\b/.test(accepted)) return reply.header('content-encoding', 'br').send(asset.brotli);
  if (/\bgzip\b/.test(accepted)) return reply.header('content-encoding', 'gzip').send(asset.gzip);
  return reply.send(asset.body);
}
