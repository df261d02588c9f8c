// The companion behind a complete API server, on a real database of either kind. It has apps of two
// accounts with API keys and tokens, and keeps everything that was logged. With `nats: true` it
// also has a real nats-server, and ingest runs on it.
//
//  describe.each(databaseKinds)('… on %s', (kind) => {
//    let rig: Rig;
//    beforeAll(async () => { rig = await startRig(kind); });
//    afterEach(() => rig.clear());
//    afterAll(() => rig.close());
//  });

import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import type { LightMyRequestResponse as Response } from 'fastify';
import { pino } from 'pino';
import { createApiServer } from '../../src/api/server.ts';
import type { ApiServices } from '../../src/api/services.ts';
import { companionRoutes, openIngest } from '../../src/companion/companion.ts';
import type { CompanionDependencies } from '../../src/companion/dependencies.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import type { ApiInstance } from '../../src/http/http.ts';
import { Closers } from '../../src/lib/closers.ts';
import { type Scope, scopes } from '../../src/store/apps/app-directory.ts';
import { type AppCredentials, createAppStore } from '../../src/store/apps/apps.ts';
import { type Bot, createBotDirectory } from '../../src/store/apps/bot-directory.ts';
import { createSecretBox, type SecretBox } from '../../src/store/secrets.ts';
import { type ProblemDocument, token } from '../api/support.ts';
import { type DatabaseKind, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { startTestNats } from '../support/nats.ts';
import { ensureStreams } from '../support/streams.ts';
import { empty, insertRows, tableNamesIn } from '../support/tables.ts';

export type TestApp = AppCredentials;

export type Ask = {
  /**
   * The app that sends the request. Default: `rig.acme`. Undefined for a request without
   * credentials.
   */
  readonly as?: TestApp | undefined;
  /** Which of the app's credentials to use. Default: the token. */
  readonly scheme?: 'jwt' | 'apiKey';
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | string[]>>;
  /** The client's address. */
  readonly from?: string;
};

export type Rig = AsyncDisposable & {
  readonly server: ApiInstance;
  readonly database: TestDatabase;
  readonly secrets: SecretBox;
  readonly events: EventConnection;
  /** An app of the account `acme` with every scope and every bot. */
  readonly acme: TestApp;
  /** An app of the account `rival` with every scope and every bot. */
  readonly rival: TestApp;
  /** An app of the account `acme` without scopes. */
  readonly powerless: TestApp;
  /** Adds an app. Default: of the account `acme`, with every scope and every bot. */
  addApp(changes: {
    readonly accountId?: string;
    readonly bots?: readonly string[];
    readonly scopes?: readonly Scope[];
  }): Promise<TestApp>;
  /**
   * Registers a bot. Call it before the first request that names the bot: for 5 s the directory
   * remembers that it did not find one.
   */
  addBot(bot: Bot): Promise<void>;
  /** Sends a request. A string is sent as the body unchanged. */
  ask(
    method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    body?: unknown,
    ask?: Ask,
  ): Promise<Response>;
  /** Returns every line that was logged so far, including debug lines. */
  logged(): string;
  /** Empties the companion's tables. Apps and bots stay. */
  clear(): Promise<void>;
  close(): Promise<void>;
};

const kept = new Set(['apps', 'webhook_secrets', 'bots']);

function payloadOf(body: unknown): { readonly payload?: string } {
  if (body === undefined) return {};
  return { payload: typeof body === 'string' ? body : JSON.stringify(body) };
}

export async function startRig(
  kind: DatabaseKind,
  options: {
    readonly nats?: boolean;
    /** Replaces services that refuse every request, because this rig has no calls. */
    readonly services?: (
      dependencies: CompanionDependencies,
      closers: Closers,
    ) => Promise<Partial<ApiServices>>;
  } = {},
): Promise<Rig> {
  const database = await openTestDatabase(kind);
  const emptied = (await tableNamesIn(database.pool)).filter((name) => !kept.has(name));
  const secrets = createSecretBox(randomBytes(32));
  const clock = { now: () => new Date() };
  const apps = createAppStore({ database, secrets, clock, tokenMaxTtlS: 86_400 });
  const bots = createBotDirectory({ database, clock });
  const lines: string[] = [];
  const logger = pino({ level: 'trace' }, lineWriter(lines));
  const nats = options.nats === true ? await startTestNats() : undefined;
  const events = (await nats?.connect()) ?? withoutNats;
  const closers = new Closers(logger);
  const http = {
    ...{ host: '127.0.0.1', port: 3000, publicUrl: 'https://calls.example.com' },
    trustedProxies: ['127.0.0.1/32'],
  };
  const config = {
    http,
    retention: { eventDays: 1, recordDays: 1, contextHours: 1, historyDays: 1 },
  };
  const companion = { config, database, secrets, bots, events, clock, logger };
  if (nats !== undefined) {
    await ensureStreams(events, config.retention);
    await openIngest(companion, closers);
  }

  const addApp: Rig['addApp'] = ({ accountId = 'acme', ...changes }) =>
    apps.createApp({ name: 'test', accountId, bots: ['*'], scopes, ...changes });
  const acme = await addApp({});
  const rival = await addApp({ accountId: 'rival' });
  const powerless = await addApp({ scopes: [] });

  const unused = () => Promise.reject(new Error('calls are not part of this rig'));
  const server = await createApiServer({
    config,
    logger,
    areas: [companionRoutes(companion)],
    services: {
      apps,
      bots,
      intake: { submit: unused },
      routes: {
        plan: () => ({ ok: false, field: 'target', message: 'no calls here' }),
        passes: () => false,
      },
      speechToTextProviders: undefined,
      maxCallDurationMs: 7_200_000,
      commands: { run: unused },
      calls: {
        list: unused,
        summary: unused,
        callers: unused,
        state: unused,
        details: unused,
        context: unused,
        notifications: unused,
      },
      live: { follow: async function* () {} },
      deadLetters: { list: unused, replayOne: unused, replay: unused },
      isNotifiable: () => false,
      isSoundReachable: () => false,
      keyProblem: unused,
      streams: {
        isReachable: ({ hostname }) => hostname !== '10.0.0.1',
        seal: (_botId, url) => ({ url }),
        callOf: async () => undefined,
      },
      recordings: { find: unused, read: unused, metadata: unused, remove: unused },
      sounds: { list: unused, find: unused, remove: unused, put: unused },
      suppressing: { suppress: unused, store: unused, cancelSuppressed: unused },
      suppressions: { find: unused, list: unused, remove: unused, check: unused },
      campaigns: { list: unused, find: unused },
      ruleSets: { list: unused, find: unused, remove: unused, put: unused },
      rules: { find: unused, check: unused },
      records: {
        read: () => {
          throw new Error('calls are not part of this rig');
        },
      },
      persons: { remove: unused },
      health: [],
      servers: () => [],
      ...(await options.services?.(companion, closers)),
    },
  });

  const close = async (): Promise<void> => {
    await server.close();
    await closers.closeAll();
    await nats?.stop();
    await database.remove();
  };
  return {
    server,
    database,
    secrets,
    events,
    acme,
    rival,
    powerless,
    addApp,
    addBot: (bot) => insertRows(database.pool, 'bots', [{ ...bot, createdAt: clock.now() }]),
    ask: async (method, url, body, { headers, query, from, ...who } = {}) => {
      const credentials = await credentialsOf('as' in who ? who.as : acme, who.scheme ?? 'jwt');
      return await server.inject({
        method,
        url,
        headers: {
          ...credentials,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(query === undefined ? {} : { query }),
        ...(from === undefined ? {} : { remoteAddress: from }),
        ...payloadOf(body),
      });
    },
    logged: () => lines.join(''),
    clear: () => empty(database.pool, emptied),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function credentialsOf(
  app: TestApp | undefined,
  scheme: 'jwt' | 'apiKey',
): Promise<Record<string, string>> {
  if (app === undefined) return {};
  if (scheme === 'apiKey') return { 'x-api-key': app.apiKey };
  return { auth: await token({ appId: app.appId }, { secret: app.jwtSecret }) };
}

export function problemOf(response: Response): ProblemDocument {
  return response.json<ProblemDocument>();
}

/** Returns `path: message` for every wrong member. */
export function errorsOf(response: Response): readonly string[] {
  return (problemOf(response).errors ?? []).map(({ path, message }) => `${path}: ${message}`);
}

function lineWriter(lines: string[]): Writable {
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
}

const withoutNats = new Proxy({} as EventConnection, {
  get: (_target, name) => {
    throw new Error(`this rig has no NATS (${String(name)}): startRig(kind, { nats: true })`);
  },
});
