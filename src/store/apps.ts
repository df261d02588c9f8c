// Apps and their secrets. A new app's credentials are told once: the API key is kept only as a hash, the rest encrypted.

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { and, asc, desc, eq, gt, isNull, or } from 'drizzle-orm';
import type { Clock } from '../calls/ports.ts';
import { type App, type AppDirectory, scopes as allScopes, type Scope } from './app-directory.ts';
import type { Database } from './database.ts';
import { ExpiringCache } from './expiring-cache.ts';
import { isId } from './ids.ts';
import { apps, webhookSecrets } from './schema.ts';
import type { SecretBox } from './secrets.ts';

export type AppCredentials = {
  readonly appId: string;
  readonly accountId: string;
  readonly bots: readonly string[];
  readonly apiKey: string;
  readonly jwtSecret: string;
  /** `whsec_` and the base64 of 32 bytes. */
  readonly webhookSecret: string;
};

export type NewApp = {
  readonly name: string;
  readonly accountId: string;
  /** Bot ids, or `*` alone. */
  readonly bots: readonly string[];
  readonly scopes: readonly Scope[];
};

export type AppSummary = Omit<App, 'jwtSecret'> & { readonly revokedAt?: Date };

/** What is stored of an app, opened. */
export type StoredApp = {
  readonly credentials: Omit<AppCredentials, 'apiKey'>;
  readonly apiKeyHash: string | undefined;
};

export type AppStore = AppDirectory & {
  createApp(app: NewApp): Promise<AppCredentials>;
  /** Revoked ones too, oldest first. */
  list(): Promise<readonly AppSummary[]>;
  /** All that are live, newest first: each notification is signed with every one of them. Cached for a few seconds. */
  webhookSecrets(appId: string): Promise<readonly string[]>;
  /** Past the cache; for those who keep the credentials elsewhere too. */
  load(appId: string): Promise<StoredApp | undefined>;
  /** With credentials that were given out before. */
  insert(app: NewApp, credentials: AppCredentials): Promise<void>;
  setApiKey(appId: string, apiKey: string): Promise<void>;
};

export type AppStoreDependencies = {
  readonly database: Pick<Database, 'db'>;
  readonly secrets: SecretBox;
  readonly clock: Clock;
};

/** How long a revoked app or secret goes on being taken; every request asks. */
const cacheOptions = { timeToLiveMs: 5_000, maxEntries: 1_000 };
const jwtAlgorithm = 'HS256';

export function createAppStore(dependencies: AppStoreDependencies): AppStore {
  const { db } = dependencies.database;
  const nowMs = (): number => dependencies.clock.now().getTime();
  const known = new ExpiringCache(
    (appId: string) => readApp(dependencies, appId),
    cacheOptions,
    nowMs,
  );
  const signing = new ExpiringCache(
    (appId: string) => readWebhookSecrets(dependencies, appId),
    cacheOptions,
    nowMs,
  );

  async function insert(app: NewApp, credentials: AppCredentials): Promise<void> {
    await insertApp(dependencies, app, credentials);
    known.clear();
    signing.clear();
  }

  return {
    find: (appId) => known.get(appId),
    webhookSecrets: (appId) => signing.get(appId),
    insert,
    async createApp(app) {
      const credentials = newCredentials(`app-${randomUUID()}`, app);
      await insert(app, credentials);
      return credentials;
    },
    async list() {
      const rows = await db.select().from(apps).orderBy(asc(apps.createdAt), asc(apps.appId));
      return rows.map((row) => ({
        ...summaryOf(row),
        ...(row.revokedAt === null ? {} : { revokedAt: row.revokedAt }),
      }));
    },
    load: (appId) => loadApp(dependencies, appId),
    async setApiKey(appId, apiKey) {
      const apiKeyHash = hashApiKey(apiKey);
      await db.update(apps).set({ apiKeyHash }).where(eq(apps.appId, appId));
    },
  };
}

async function readApp(
  { database, secrets }: AppStoreDependencies,
  appId: string,
): Promise<App | undefined> {
  const [row] = await database.db
    .select()
    .from(apps)
    .where(and(eq(apps.appId, appId), isNull(apps.revokedAt)));
  if (row?.jwtSecret == null) return undefined;
  return { ...summaryOf(row), jwtSecret: secrets.open('jwt-secret', appId, row.jwtSecret) };
}

async function readWebhookSecrets(
  { database, secrets, clock }: AppStoreDependencies,
  appId: string,
): Promise<readonly string[]> {
  const isLive = or(isNull(webhookSecrets.expiresAt), gt(webhookSecrets.expiresAt, clock.now()));
  const rows = await database.db
    .select()
    .from(webhookSecrets)
    .where(and(eq(webhookSecrets.appId, appId), isLive))
    .orderBy(desc(webhookSecrets.createdAt));
  return rows.map((row) => secrets.open('webhook-secret', row.secretId, row.secret));
}

async function loadApp(
  dependencies: AppStoreDependencies,
  appId: string,
): Promise<StoredApp | undefined> {
  const [row] = await dependencies.database.db.select().from(apps).where(eq(apps.appId, appId));
  const [webhookSecret] = await readWebhookSecrets(dependencies, appId);
  if (row?.jwtSecret == null || webhookSecret === undefined) return undefined;
  const jwtSecret = dependencies.secrets.open('jwt-secret', appId, row.jwtSecret);
  const { accountId, bots } = row;
  return {
    credentials: { appId, accountId, bots, jwtSecret, webhookSecret },
    apiKeyHash: row.apiKeyHash ?? undefined,
  };
}

async function insertApp(
  { database, secrets, clock }: AppStoreDependencies,
  app: NewApp,
  credentials: AppCredentials,
): Promise<void> {
  assertUsableIds(app);
  const { appId } = credentials;
  const secretId = `whs-${randomUUID()}`;
  const createdAt = clock.now();
  await database.db.transaction(async (transaction) => {
    await transaction.insert(apps).values({
      appId,
      accountId: app.accountId,
      name: app.name,
      bots: app.bots,
      scopes: app.scopes,
      jwtAlgorithm,
      jwtSecret: secrets.seal('jwt-secret', appId, credentials.jwtSecret),
      apiKeyHash: hashApiKey(credentials.apiKey),
      createdAt,
    });
    const secret = secrets.seal('webhook-secret', secretId, credentials.webhookSecret);
    await transaction.insert(webhookSecrets).values({ secretId, appId, secret, createdAt });
  });
}

export function newCredentials(
  appId: string,
  { accountId, bots }: Pick<NewApp, 'accountId' | 'bots'>,
): AppCredentials {
  return {
    appId,
    accountId,
    bots,
    apiKey: newApiKey(),
    // 64 characters: a full key for every HMAC, up to HS512.
    jwtSecret: randomBytes(48).toString('base64url'),
    webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
  };
}

export function newApiKey(): string {
  return `ofk_${randomBytes(32).toString('base64url')}`;
}

/** Random and long, so that a slow hash would add nothing. */
export function hashApiKey(apiKey: string): string {
  return createHash('sha256').update(apiKey).digest('hex');
}

function assertUsableIds({ accountId, bots }: NewApp): void {
  const everyBot = bots.length === 1 && bots[0] === '*';
  const bad = [accountId, ...(everyBot ? [] : bots)].find((id) => !isId(id));
  if (bad !== undefined)
    throw new Error(`'${bad}' is not an id: letters, digits, - and _, up to 128 of them`);
  if (bots.length === 0) throw new Error('an app needs at least one bot, or * for every bot');
}

function summaryOf(row: typeof apps.$inferSelect): Omit<App, 'jwtSecret'> {
  return {
    appId: row.appId,
    accountId: row.accountId,
    name: row.name,
    bots: row.bots,
    scopes: allScopes.filter((scope) => row.scopes.includes(scope)),
    jwtAlgorithm: row.jwtAlgorithm as App['jwtAlgorithm'],
    createdAt: row.createdAt,
  };
}
