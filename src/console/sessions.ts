// Signing in and out, and whom a session speaks for. It may do what its app may, and ends with it.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { ApiInstance, Caller } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import type { App, AppDirectory } from '../store/apps/app-directory.ts';
import {
  type Asked,
  assertHost,
  assertOrigin,
  assertPageToken,
  cookieFor,
  type PublicUrl,
  pageTokenOf,
  readCookie,
  writeCookie,
} from './guard.ts';
import { linkLifetimeMs, type SessionStore, sessionLifetimeMs } from './session-store.ts';

export type SessionDependencies = {
  readonly sessions: SessionStore;
  readonly apps: AppDirectory;
  readonly publicUrl: PublicUrl;
};

/** Of every request to the console's routes, before anything is looked up. */
export function createDoor({ publicUrl }: Pick<SessionDependencies, 'publicUrl'>) {
  return async (request: FastifyRequest): Promise<void> => {
    assertHost(request, publicUrl);
    if (request.method !== 'GET' && request.method !== 'HEAD') assertOrigin(request, publicUrl);
  };
}

export type SessionReader = {
  secretOf(request: Pick<Asked, 'headers'>): string | undefined;
  /** @throws ProblemError: no session, or the page's token is missing where something is changed. */
  appOf(request: Asked): Promise<App>;
};

export function createSessionReader({
  sessions,
  apps,
  publicUrl,
}: SessionDependencies): SessionReader {
  const secretOf = ({ headers }: Pick<Asked, 'headers'>): string | undefined =>
    readCookie(cookieFor(publicUrl, headers['host']), headers['cookie']);
  return {
    secretOf,
    async appOf(request) {
      const secret = secretOf(request);
      const session = secret === undefined ? undefined : await sessions.find(secret);
      const app = session === undefined ? undefined : await apps.find(session.appId);
      if (secret === undefined || app === undefined) throw signedOut();
      if (request.method !== 'GET' && request.method !== 'HEAD') assertPageToken(request, secret);
      return app;
    },
  };
}

const linkBody = z.strictObject({ token: z.string().min(1).max(128) });

/** `POST /console/link` is asked with a token of the app, by `offhook console`; the rest by the page. */
export function registerSessions(
  server: ApiInstance,
  { sessions, apps, publicUrl }: SessionDependencies,
  reader: SessionReader,
): void {
  const onRequest = createDoor({ publicUrl });

  server.route({
    method: 'POST',
    url: '/console/session',
    onRequest,
    schema: { hide: true, body: linkBody },
    handler: async (request, reply) => {
      const session = await sessions.redeem(request.body.token);
      const app = session === undefined ? undefined : await apps.find(session.appId);
      if (session === undefined || app === undefined) throw usedUp();
      const cookie = cookieFor(publicUrl, request.headers.host);
      const maxAgeS = sessionLifetimeMs / 1_000;
      void reply.header('set-cookie', writeCookie(cookie, session.secret, maxAgeS));
      return viewOf(app, session.secret, session.expiresAt);
    },
  });

  server.route({
    method: 'GET',
    url: '/console/session',
    onRequest,
    schema: { hide: true },
    handler: async (request) => {
      const app = await reader.appOf(request);
      const secret = reader.secretOf(request) ?? '';
      const session = await sessions.find(secret);
      if (session === undefined) throw signedOut();
      return viewOf(app, secret, session.expiresAt);
    },
  });

  server.route({
    method: 'DELETE',
    url: '/console/session',
    onRequest,
    schema: { hide: true },
    handler: async (request, reply) => {
      await reader.appOf(request);
      await sessions.end(reader.secretOf(request) ?? '');
      const cookie = cookieFor(publicUrl, request.headers.host);
      void reply.header('set-cookie', writeCookie(cookie, '', 0));
      return {};
    },
  });
}

export function registerLink(
  server: ApiInstance,
  { sessions, publicUrl }: SessionDependencies,
  caller: Caller,
): void {
  server.route({
    method: 'POST',
    url: '/console/link',
    onRequest: caller.require({}),
    schema: { hide: true },
    handler: async (request) => {
      const { token, expiresAt } = await sessions.createLink(caller.of(request).appId);
      const base = (publicUrl ?? `http://${request.headers.host}`).replace(/\/$/, '');
      // Behind `#`: it is in no log of a proxy, and in no Referer.
      const url = `${base}/console#token=${token}`;
      return { url, expiresAt: expiresAt.toISOString(), validForS: linkLifetimeMs / 1_000 };
    },
  });
}

function viewOf(app: App, secret: string, expiresAt: Date) {
  const { appId, accountId, name, bots, scopes } = app;
  return {
    app: { appId, accountId, name, bots, scopes },
    expiresAt: expiresAt.toISOString(),
    pageToken: pageTokenOf(secret),
  };
}

function signedOut(): ProblemError {
  return new ProblemError(
    'unauthorized',
    'Sign in with the link that `npx offhook console` prints.',
    {
      challenge: 'Cookie',
    },
  );
}

function usedUp(): ProblemError {
  return new ProblemError(
    'unauthorized',
    'The link was used before, or is older than a minute. npx offhook console prints another.',
    { challenge: 'Cookie' },
  );
}
