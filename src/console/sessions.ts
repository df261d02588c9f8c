// Signs users in and out. A session can do whatever its app can do. It ends when the app is
// revoked, or when a credential that the session depends on becomes invalid. Every request checks
// both conditions in the database and bypasses all caches, except that the page about outages works
// during an outage of the database.

import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { ApiInstance, Clients } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import { within } from '../lib/within.ts';
import { jwtKeyId } from '../store/apps/app-credentials.ts';
import type { App } from '../store/apps/app-directory.ts';
import { consoleAddress, type ListeningAddress, linkWith } from './console-address.ts';
import {
  assertHost,
  assertOrigin,
  assertPageToken,
  assertSite,
  cookieFor,
  type PublicUrl,
  pageTokenOf,
  type RequestHead,
  readCookie,
  writeCookie,
} from './guard.ts';
import {
  type Grant,
  linkLifetimeMs,
  type Session,
  type SessionStore,
  sessionLifetimeMs,
} from './session-store.ts';

export type SessionDependencies = {
  readonly sessions: SessionStore;
  /**
   * Reads an app, bypassing all caches. Returns undefined if the app is unknown or has been
   * revoked.
   */
  readonly appNow: (appId: string) => Promise<App | undefined>;
  readonly address: ListeningAddress;
  /** Whether the database is known to be away, so that we don't have to wait for it. */
  readonly isDatabaseAway: () => boolean;
};

/**
 * Creates the hook that checks `Host` and `Origin` for each request to the console, before anything
 * else is done.
 */
export function createGuard(publicUrl: PublicUrl) {
  return async (request: FastifyRequest): Promise<void> => {
    assertHost(request, publicUrl);
    if (request.method !== 'GET' && request.method !== 'HEAD') assertOrigin(request, publicUrl);
  };
}

/**
 * Creates the hook for data requests, which also rejects requests from other origins. The page
 * itself doesn't need this check, because any site may link to it.
 */
export function createDataGuard(publicUrl: PublicUrl) {
  const guard = createGuard(publicUrl);
  return async (request: FastifyRequest): Promise<void> => {
    await guard(request);
    assertSite(request);
  };
}

export type SignedIn = { readonly app: App; readonly session: Session; readonly secret: string };

export type SessionReader = {
  /** @returns undefined if the request has no session, or its session has ended */
  find(request: Pick<RequestHead, 'headers'>): Promise<SignedIn | undefined>;
  /**
   * @throws ProblemError if the request has no session, or if it changes something and lacks the
   * page's token
   */
  read(request: RequestHead): Promise<SignedIn>;
  /**
   * Like `read`, but while the database is away, accepts a session that was valid a few minutes
   * ago. Use this only for the page that shows outages.
   *
   * @throws ProblemError if the request has no session
   */
  readOrRecall(request: RequestHead): Promise<SignedIn>;
  /** Call this when a session ends. */
  forget(signedIn: SignedIn): void;
};

/** Long enough to watch an outage of five minutes, and to find out what went wrong. */
const recallMs = 15 * 60_000;
const maxRecalled = 1_000;
/** How long we wait for a database that isn't known to be away yet. */
const recallAfterMs = 1_000;

/** `nowMs` is a monotonic clock. */
export function createSessionReader(
  dependencies: SessionDependencies,
  nowMs = () => performance.now(),
): SessionReader {
  const { sessions, address, isDatabaseAway } = dependencies;
  const recent = new LRUCache<string, SignedIn>({
    ...{ max: maxRecalled, ttl: recallMs, ttlResolution: 0 },
    perf: { now: nowMs },
  });
  const secretOf = ({ headers }: Pick<RequestHead, 'headers'>) =>
    readCookie(cookieFor(address.publicUrl, headers['host']), headers['cookie']);
  const find: SessionReader['find'] = async (request) => {
    const secret = secretOf(request);
    if (secret === undefined) return undefined;
    const session = await sessions.find(secret);
    const app = await liveAppOf(dependencies, session);
    if (session === undefined || app === undefined) {
      recent.delete(secret);
      return undefined;
    }
    const signedIn = { app, session, secret };
    recent.set(secret, signedIn);
    return signedIn;
  };
  const recall = (request: RequestHead): SignedIn | undefined =>
    recent.get(secretOf(request) ?? '');
  const read: SessionReader['read'] = async (request) => {
    const signedIn = await find(request);
    if (signedIn === undefined) throw notSignedIn();
    if (request.method !== 'GET' && request.method !== 'HEAD')
      assertPageToken(request, signedIn.secret);
    return signedIn;
  };
  return {
    find,
    read,
    forget: ({ secret }) => {
      recent.delete(secret);
    },
    async readOrRecall(request) {
      const recalled = recall(request);
      if (recalled === undefined) return await read(request);
      if (isDatabaseAway()) return recalled;
      const reading = read(request).catch((error: unknown) => {
        if (error instanceof ProblemError) throw error;
        return recalled;
      });
      return (await within(reading, recallAfterMs)) ?? recalled;
    },
  };
}

/**
 * @returns undefined if the app has been revoked, or a credential that the grant depends on is no
 * longer valid
 */
async function liveAppOf(
  { appNow }: SessionDependencies,
  grant: Grant | undefined,
): Promise<App | undefined> {
  const app = grant && (await appNow(grant.appId));
  return grant && app && isLive(grant, app) ? app : undefined;
}

const linkBody = z.strictObject({
  token: z.string(),
  /** Id of the app whose session the user agrees to replace. */
  insteadOf: z.string().optional(),
});

export function registerSessions(
  server: ApiInstance,
  dependencies: SessionDependencies,
  reader: SessionReader,
): void {
  const { sessions, address } = dependencies;
  const onRequest = createDataGuard(address.publicUrl);

  server.route({
    method: 'POST',
    url: '/console/session',
    onRequest,
    schema: { hide: true, body: linkBody },
    handler: async (request, reply) => {
      const { token, insteadOf } = request.body;
      const app = await liveAppOf(dependencies, await sessions.findLink(token));
      if (app === undefined) throw linkUnusable();
      const before = await reader.find(request);
      // This prevents login CSRF. If we didn't ask, the sender of a link could have the user work
      // in the sender's app without noticing.
      if (before !== undefined && ![app.appId, insteadOf].includes(before.app.appId))
        return { asks: { signedIn: summaryOf(before.app), link: summaryOf(app) } };
      const session = await sessions.redeem(token);
      if (session === undefined) throw linkUnusable();
      if (before !== undefined) await sessions.end(before.secret);
      const cookie = cookieFor(address.publicUrl, request.headers.host);
      const maxAgeS = sessionLifetimeMs / 1_000;
      void reply.header('set-cookie', writeCookie(cookie, session.secret, maxAgeS));
      return viewOf({ app, session, secret: session.secret });
    },
  });

  server.route({
    method: 'GET',
    url: '/console/session',
    onRequest,
    schema: { hide: true },
    handler: async (request) => viewOf(await reader.readOrRecall(request)),
  });

  server.route({
    method: 'DELETE',
    url: '/console/session',
    onRequest,
    schema: { hide: true },
    handler: async (request, reply) => {
      const signedIn = await reader.read(request);
      await sessions.end(signedIn.secret);
      reader.forget(signedIn);
      const cookie = cookieFor(address.publicUrl, request.headers.host);
      void reply.header('set-cookie', writeCookie(cookie, '', 0));
      return {};
    },
  });
}

/** Registers `POST /console/link`, which `offhook console` calls with the app's token. */
export function registerLink(
  server: ApiInstance,
  dependencies: SessionDependencies,
  clients: Clients,
): void {
  const { sessions, address } = dependencies;
  server.route({
    method: 'POST',
    url: '/console/link',
    onRequest: clients.require({}),
    schema: { hide: true },
    handler: async (request) => {
      const page = consoleAddress(address, request.socket.localPort ?? 0);
      if (page === undefined) throw consoleNotServed(address);
      const app = await dependencies.appNow(clients.appOf(request).appId);
      const grant = app && grantFor(app, clients.keyIdOf(request));
      // We authenticated the client against a cached copy of the app, which may be a few seconds
      // old.
      if (!app || !grant || !isLive(grant, app)) throw keyReplaced();
      const { token, expiresAt } = await sessions.createLink(grant);
      return {
        url: linkWith(page, token),
        expiresAt: expiresAt.toISOString(),
        validForS: linkLifetimeMs / 1_000,
      };
    },
  });
}

function summaryOf({ appId, accountId, name }: App) {
  return { appId, accountId, name };
}

function viewOf({ app, session, secret }: SignedIn) {
  const { bots, scopes } = app;
  return {
    app: { ...summaryOf(app), bots, scopes },
    expiresAt: session.expiresAt.toISOString(),
    pageToken: pageTokenOf(secret),
  };
}

function notSignedIn(): ProblemError {
  return new ProblemError(
    'unauthorized',
    'Sign in with the link that `npx offhook console` prints.',
    {
      challenge: 'Cookie',
    },
  );
}

function linkUnusable(): ProblemError {
  return new ProblemError(
    'unauthorized',
    'The link was already used, or is too old. npx offhook console prints a new one.',
    { challenge: 'Cookie' },
  );
}

function keyReplaced(): ProblemError {
  return new ProblemError('unauthorized', 'The key that signed the token was replaced.');
}

function consoleNotServed({ host }: ListeningAddress): ProblemError {
  return new ProblemError(
    'conflict',
    `The gateway listens on ${host}, where the console is not served. Set PUBLIC_URL to the address that browsers use.`,
  );
}

/**
 * Creates a link's grant. Links and sessions depend on two of their app's credentials, and end when
 * either credential becomes invalid. One is the JWT key that verified the token for
 * `/console/link`. The other is the API key that the app had at that time. An API key can't open
 * the console, but an operator who replaces it wants to lock out everybody who had the app's
 * credentials.
 *
 * @param keyId id of the key that verified the token. Default: the app's newest key
 */
export function grantFor(app: App, keyId = newestKeyId(app)): Grant {
  return { appId: app.appId, openedBy: [keyId, ...app.apiKeyIds.slice(0, 1)] };
}

/**
 * Returns whether all the grant's credentials are valid. Callers must read `app` bypassing all
 * caches.
 */
function isLive({ openedBy }: Grant, app: App): boolean {
  const live = new Set([...app.jwtKeys.map(jwtKeyId), ...app.apiKeyIds]);
  return openedBy.length > 0 && openedBy.every((id) => live.has(id));
}

function newestKeyId({ appId, jwtKeys: [newest] }: App): string {
  if (newest === undefined) throw new Error(`the app ${appId} has no key`);
  return jwtKeyId(newest);
}
