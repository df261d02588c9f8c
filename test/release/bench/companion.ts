// Measures the companion's routes: rows inserted, pages of history and connections read per second.
// Compares each route with a minimal fastify route that runs the same statement, in alternating
// rounds of one run.

import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { createApiServer } from '../../../src/api/server.ts';
import type { ApiServices } from '../../../src/api/services.ts';
import { companionRoutes } from '../../../src/companion/companion.ts';
import { publishedMessage } from '../../../src/companion/history/message-schema.ts';
import { storeMessages } from '../../../src/companion/history/published-messages.ts';
import type { EventConnection } from '../../../src/events/connection.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { spawnWorker } from '../../../src/lib/threads/worker-threads.ts';
import { scopes } from '../../../src/store/apps/app-directory.ts';
import { type AppCredentials, createAppStore } from '../../../src/store/apps/apps.ts';
import { createBotDirectory } from '../../../src/store/apps/bot-directory.ts';
import { createDataTables } from '../../../src/store/data-tables.ts';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import { createSecretBox } from '../../../src/store/secrets.ts';
import { token } from '../../api/support.ts';
import { makeDataDir } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import type { Load } from './http-load-worker.ts';
import { optionsOf } from './options.ts';

const connections = 16;
const clock = { now: () => new Date() };
const userId = 'jane.doe@example.com';

type Request = Pick<Load, 'method' | 'headers' | 'body'> & { readonly path: string };
type Measured = { readonly name: string; readonly request: Request };
type Statement = { readonly text: string; readonly values: unknown[] };

export async function benchCompanion(args: readonly string[]): Promise<void> {
  const defaults = { seconds: 3, rounds: 5, messages: 100_000, database: 'both' };
  const { seconds, database, ...rest } = optionsOf(args, defaults);
  const options = { milliseconds: seconds * 1_000, ...rest };
  if (database !== 'postgres') await benchOn('PGlite', options);
  if (database === 'pglite') return;
  const postgres = await startPostgres({ fsync: true });
  try {
    await benchOn('PostgreSQL (fsync on)', options, postgres.url);
  } finally {
    await postgres.stop();
  }
}

type Options = {
  readonly milliseconds: number;
  readonly rounds: number;
  readonly messages: number;
};

async function benchOn(name: string, options: Options, databaseUrl?: string): Promise<void> {
  const dataDir = await makeDataDir();
  const database = await openDatabase({
    ...{ dataDir: dataDir.path, logger: silentLogger },
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  const offhook = await startOffhook(database);
  try {
    console.log(`\n${name}, ${options.messages} messages`);
    await database.pool.query('analyze');
    await fill(database, options.messages);
    for (const measured of await requestsTo(offhook.url, offhook.app, database)) {
      await compare(database, offhook.url, measured, options);
    }
  } finally {
    await offhook.close();
    await database.close();
    await dataDir.remove();
  }
}

async function startOffhook(database: Database) {
  const secrets = createSecretBox(Buffer.alloc(32, 7));
  const apps = createAppStore({ database, secrets, clock, tokenMaxTtlS: 86_400 });
  const bots = createBotDirectory({ database, clock });
  const app = await apps.createApp({ name: 'bench', accountId: 'acme', bots: ['*'], scopes });
  const config = {
    http: {
      ...{ host: '127.0.0.1', port: 0, publicUrl: 'http://bench.example.com' },
      trustedProxies: [],
    },
    retention: { eventDays: 30, recordDays: 30, contextHours: 24, historyDays: 30 },
  };
  const events = undefined as unknown as EventConnection;
  const dependencies = { config, database, secrets, bots, events, clock, logger: silentLogger };
  const server = await createApiServer({
    config,
    logger: silentLogger,
    areas: [companionRoutes(dependencies)],
    // No request of this bench concerns a call.
    services: { apps, bots, health: [] } as Partial<ApiServices> as ApiServices,
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  return { url, app, close: () => server.close() };
}

async function fill(database: Database, messages: number): Promise<void> {
  const bot = { botId: 'st-bench', accountId: 'acme' };
  const perSession = 20;
  const base = Date.now() - messages * 1_000;
  for (let from = 0; from < messages; from += 1_000) {
    const batch = Array.from({ length: Math.min(1_000, messages - from) }, (_, index) => {
      const number = from + index;
      return {
        bot,
        version: number,
        body: publishedMessage.parse({
          _id: `ms-${randomUUID()}`,
          type: number % 2 === 0 ? 'incoming' : 'outgoing',
          status: 'delivered',
          createdBy: userId,
          createdOn: new Date(base + number * 1_000).toISOString(),
          channels: [{ type: 'rtm', channelUId: 'jane/web' }],
          components: [{ cT: 'text', data: { text: 'What is my balance, please?' } }],
          lang: 'en',
          chnl: 'rtm',
          tags: { campaign: 'spring' },
          sessionId: `ss-${Math.floor(number / perSession)}`,
        }),
      };
    });
    await storeMessages(database, batch);
  }
}

async function requestsTo(
  url: string,
  app: AppCredentials,
  database: Database,
): Promise<readonly Measured[]> {
  await createDataTables({ database, clock }).define(
    {
      accountId: 'acme',
      name: 'visits',
      columns: [
        { name: 'name', type: 'string', required: true },
        { name: 'visits', type: 'integer' },
      ],
      writers: ['*'],
    },
    { replace: true },
  );
  const auth = await token({ appId: app.appId }, { secret: app.jwtSecret, ttl: '10h' });
  const apiKey = { 'x-api-key': app.apiKey };
  const json = { 'content-type': 'application/json' };
  const created = await fetch(`${url}/api/public/connections`, {
    method: 'POST',
    headers: { ...apiKey, ...json },
    body: JSON.stringify({
      provider: 'VendorA AI',
      connectionName: 'bench',
      model: 'm-1',
      fields: { API_KEY: 'sk-0123456789abcdef' },
    }),
  });
  const { connectionId } = (await created.json()) as { connectionId: string };
  const get = (path: string, headers: Record<string, string>) => ({
    ...{ method: 'GET', path, headers, body: undefined },
  });
  const row = JSON.stringify({ data: { name: 'Jane Doe', visits: 3 } });
  const history = `/api/public/bot/st-bench/getMessages?userId=${encodeURIComponent(userId)}`;
  return [
    {
      name: 'rows inserted',
      request: {
        ...{ method: 'POST', path: '/api/public/tables/visits' },
        ...{ headers: { auth, ...json }, body: row },
      },
    },
    { name: 'history pages of 20', request: get(`${history}&limit=20`, { auth }) },
    { name: 'history pages of 100', request: get(`${history}&limit=100`, { auth }) },
    {
      name: 'connections read',
      request: get(`/api/public/connections/${connectionId}`, apiKey),
    },
  ];
}

// ── Side by side ─────────────────────────────────────────────────────────────────────────────────

async function compare(
  database: Database,
  url: string,
  { name, request }: Measured,
  { milliseconds, rounds }: Options,
): Promise<void> {
  const minimal = await startMinimal(database, url, request);
  const load = (base: string): Load => ({
    ...request,
    url: `${base}${request.path}`,
    connections,
    milliseconds,
  });
  const rates: [offhook: number, minimal: number][] = [];
  try {
    // The first round is a warm-up.
    for (let round = -1; round < rounds; round += 1) {
      const pair: [number, number] = [await rate(load(url)), await rate(load(minimal.url))];
      if (round >= 0) rates.push(pair);
    }
  } finally {
    await minimal.close();
  }
  const offhook = median(rates.map(([rateOfOffhook]) => rateOfOffhook));
  const bare = median(rates.map(([, rateOfMinimal]) => rateOfMinimal));
  const ratio = median(rates.map(([a, b]) => a / b));
  console.log(
    `  ${name.padEnd(22)} ${offhook.toFixed(0).padStart(7)}/s   minimal ${bare.toFixed(0).padStart(7)}/s   ratio ${ratio.toFixed(2)}`,
  );
}

/**
 * Starts a minimal server. It runs the SQL statements that the route of Offhook runs for the
 * request, with their parameters, and answers with their rows.
 */
async function startMinimal(database: Database, url: string, request: Request) {
  const statements = await statementsOf(database, url, request);
  const server = fastify();
  server.route({
    method: ['GET', 'POST'],
    url: '*',
    handler: async () => {
      let rows: unknown[] = [];
      for (const { text, values } of statements)
        rows = (await database.pool.query(text, values.map(fresh))).rows;
      return rows;
    },
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}

/** Replaces the id of a row, because each row can be inserted only once. */
function fresh(value: unknown): unknown {
  return typeof value === 'string' && value.startsWith('sys-') ? `sys-${randomUUID()}` : value;
}

async function statementsOf(
  database: Database,
  url: string,
  { path, method, headers, body }: Request,
): Promise<readonly Statement[]> {
  const send = () => fetch(`${url}${path}`, { method, headers, body: body ?? null });
  // A first request fills the caches that last for some seconds.
  await (await send()).arrayBuffer();
  const seen: Statement[] = [];
  const { pool } = database;
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
  pool.query = ((...args: unknown[]) => {
    const [first, values] = args as [string | { text: string; values?: unknown[] }, unknown[]?];
    const text = typeof first === 'string' ? first : first.text;
    seen.push({ text, values: values ?? (typeof first === 'string' ? [] : (first.values ?? [])) });
    return query(...args);
  }) as typeof pool.query;
  const answer = await send();
  await answer.arrayBuffer();
  pool.query = query as typeof pool.query;
  if (answer.status !== 200 || seen.length === 0) throw new Error(`${path}: ${answer.status}`);
  return seen;
}

function rate(load: Load): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = spawnWorker(new URL('./http-load-worker.ts', import.meta.url), load);
    worker.once('error', reject);
    worker.once('message', ({ perSecond, failed }: { perSecond: number; failed: number }) => {
      if (failed > 0) reject(new Error(`${failed} requests to ${load.url} failed`));
      else resolve(perSecond);
    });
  });
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
