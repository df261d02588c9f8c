// Apps and their secrets. Credentials are only shown once. We store the API key as a hash, and
// encrypt the other secrets.

import { randomUUID } from 'node:crypto';
import type { NumberReading } from '../../calls/target/number-reading.ts';
import { isId } from '../../lib/ids.ts';
import { createLookupCache, type LookupCache } from '../../lib/lookup-cache.ts';
import { inTransaction } from '../transaction.ts';
import {
  type AppCredentials,
  apiKeyPattern,
  hashApiKey,
  newApiKey,
  newJwtSecret,
  newStreamSecret,
  newWebhookSecret,
} from './app-credentials.ts';
import type { App, AppDirectory, Scope } from './app-directory.ts';
import { type LimitChange, type LimitedApp, limitApp } from './app-limiting.ts';
import {
  insertWebhookSecret,
  type Rotation,
  type RotationDependencies,
  type RotationResult,
  rotate,
} from './app-rotation.ts';
import { type AppColumns, toApp, validApiKeyIds, validStreamSecrets } from './app-rows.ts';
import { type PublicKeyAlgorithm, parsePublicKeys } from './jwt-keys.ts';

export type { AppCredentials } from './app-credentials.ts';

export type NewApp = NumberReading & {
  readonly name: string;
  readonly accountId: string;
  /** Bot ids, or `*` alone. */
  readonly bots: readonly string[];
  readonly scopes: readonly Scope[];
  /** The shared secret's algorithm. Default: HS256. */
  readonly jwtAlgorithm?: SharedSecretAlgorithm;
};

export type SharedSecretAlgorithm = Exclude<App['jwtAlgorithm'], PublicKeyAlgorithm>;

export type PublicKeys = {
  readonly algorithm: PublicKeyAlgorithm;
  /** PEM, JWK or JWKS. */
  readonly keys: string;
};

export type AppSummary = Omit<App, 'jwtKeys' | 'apiKeyIds' | 'streamSecrets'> & {
  readonly revokedAt?: Date;
};

/** An app's stored secrets, decrypted. */
export type StoredApp = {
  readonly credentials: Omit<AppCredentials, 'apiKey'>;
  readonly apiKeyHash: string;
};

export type AppStore = AppDirectory & {
  /**
   * Bypasses the cache, so it sees rotations and revocations that another process has just made.
   */
  findNow(appId: string): Promise<App | undefined>;
  createApp(app: NewApp): Promise<AppCredentials>;
  /** Creates an app that signs its tokens with its own private key. */
  createAppWithKeys(
    app: Omit<NewApp, 'jwtAlgorithm'>,
    keys: PublicKeys,
  ): Promise<Omit<AppCredentials, 'jwtSecret'>>;
  /** Lists all apps, oldest first, including revoked apps. */
  list(): Promise<readonly AppSummary[]>;
  rotate(appId: string, rotation: Rotation): Promise<RotationResult>;
  /**
   * Changes the given limits. An explicit `undefined` lifts a limit. Other processes apply the
   * change within seconds.
   *
   * @returns undefined if the app is unknown or revoked
   */
  limit(appId: string, change: LimitChange): Promise<LimitedApp | undefined>;
  /**
   * Revokes an app. Within seconds, all processes reject its requests. Pending notifications for
   * its calls are still delivered.
   *
   * @returns false if the app is unknown
   */
  revoke(appId: string): Promise<boolean>;
  /**
   * Returns all valid secrets, newest first. Each notification is signed with all of them. Results
   * are cached for a few seconds.
   */
  webhookSecrets(appId: string): Promise<readonly string[]>;
  /** Bypasses the cache. For code that also keeps the credentials elsewhere. */
  load(appId: string): Promise<StoredApp | undefined>;
  /** Stores an app with credentials that have already been issued. */
  insert(app: NewApp, credentials: AppCredentials): Promise<void>;
  setApiKey(appId: string, apiKey: string): Promise<void>;
};

export type AppStoreDependencies = RotationDependencies & {
  /** The maximum token lifetime for apps that this store creates. */
  readonly tokenMaxTtlS: number;
};

/**
 * Results are cached because every request needs its app. A revoked app or secret is accepted until
 * the TTL expires.
 */
const cacheOptions = { ttlMs: 5_000, maxEntries: 1_000 };

export function createAppStore(dependencies: AppStoreDependencies): AppStore {
  const { pool } = dependencies.database;
  const remember = <Value>(load: (key: string) => Promise<Value>): LookupCache<Value> =>
    createLookupCache(load, cacheOptions, () => dependencies.clock.now().getTime());
  const known = remember((appId) => readApp(dependencies, appId));
  const keyOwners = remember((apiKeyHash) => readKeyOwner(dependencies, apiKeyHash));
  const signing = remember((appId) => readWebhookSecrets(dependencies, appId));

  /** Clears the caches after a change so that this process sees its own change immediately. */
  async function changing<Result>(change: () => Promise<Result>): Promise<Result> {
    const result = await change();
    for (const cache of [known, keyOwners, signing]) cache.clear();
    return result;
  }

  const insert: AppStore['insert'] = (app, credentials) =>
    changing(() =>
      insertApp(dependencies, app, credentials, {
        algorithm: app.jwtAlgorithm ?? 'HS256',
        key: credentials.jwtSecret,
      }),
    );

  return {
    find: (appId) => known.memo(appId),
    findNow: (appId) => readApp(dependencies, appId),
    async findByApiKey(apiKey) {
      // Text that can't be a key must not reach the database, or push a key out of the cache.
      const appId = apiKeyPattern.test(apiKey)
        ? await keyOwners.memo(hashApiKey(apiKey))
        : undefined;
      return appId === undefined ? undefined : await known.memo(appId);
    },
    webhookSecrets: (appId) => signing.memo(appId),
    insert,
    async createApp(app) {
      const credentials = newCredentials(newAppId(), app);
      await insert(app, credentials);
      return credentials;
    },
    async createAppWithKeys(app, { algorithm, keys }) {
      const parsed = parsePublicKeys(keys, algorithm);
      if (!parsed.ok) throw new Error(`the public key ${parsed.message}`);
      const { jwtSecret: _none, ...credentials } = newCredentials(newAppId(), app);
      await changing(() =>
        insertApp(dependencies, app, credentials, { algorithm, key: parsed.jwks }),
      );
      return credentials;
    },
    list: () => listApps(dependencies),
    rotate: (appId, rotation) => changing(() => rotate(dependencies, appId, rotation)),
    limit: (appId, change) => changing(() => limitApp(dependencies.database, appId, change)),
    revoke: (appId) => changing(() => revokeApp(dependencies, appId)),
    load: (appId) => loadApp(dependencies, appId),
    setApiKey: (appId, apiKey) =>
      changing(async () => {
        const apiKeyHash = hashApiKey(apiKey);
        await pool.query('update apps set api_key_hash = $2 where app_id = $1', [
          appId,
          apiKeyHash,
        ]);
      }),
  };
}

async function readApp(
  { database, secrets, clock }: AppStoreDependencies,
  appId: string,
): Promise<App | undefined> {
  const { rows } = await database.pool.query<AppColumns>(
    'select * from apps where app_id = $1 and revoked_at is null',
    [appId],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { jwt_secret: present, previous_jwt_secret: previous } = row;
  const until = row.previous_jwt_secret_until;
  const live =
    previous !== null && until !== null && until > clock.now() ? [present, previous] : [present];
  const streamSecrets = validStreamSecrets(row, clock.now()).map((sealed) =>
    secrets.open('stream-secret', appId, sealed),
  );
  return {
    ...toApp(row),
    apiKeyIds: validApiKeyIds(row, clock.now()),
    jwtKeys: live.map((sealed) => secrets.open('jwt-secret', appId, sealed)),
    streamSecrets,
  };
}

async function readKeyOwner(
  { database, clock }: AppStoreDependencies,
  hash: string,
): Promise<string | undefined> {
  const { rows } = await database.pool.query<Pick<AppColumns, 'app_id'>>(
    `select app_id from apps
     where api_key_hash = $1 or (previous_api_key_hash = $1 and previous_api_key_until > $2)`,
    [hash, clock.now()],
  );
  return rows[0]?.app_id;
}

async function readWebhookSecrets(
  { database, secrets, clock }: AppStoreDependencies,
  appId: string,
): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ secret_id: string; secret: Buffer }>(
    `select secret_id, secret from webhook_secrets
     where app_id = $1 and (expires_at is null or expires_at > $2) order by created_at desc`,
    [appId, clock.now()],
  );
  return rows.map((row) => secrets.open('webhook-secret', row.secret_id, row.secret));
}

async function loadApp(
  dependencies: AppStoreDependencies,
  appId: string,
): Promise<StoredApp | undefined> {
  const { rows } = await dependencies.database.pool.query<AppColumns>(
    'select * from apps where app_id = $1',
    [appId],
  );
  const [row] = rows;
  const [webhookSecret] = await readWebhookSecrets(dependencies, appId);
  if (row === undefined || webhookSecret === undefined) return undefined;
  const jwtSecret = dependencies.secrets.open('jwt-secret', appId, row.jwt_secret);
  const streamSecret = dependencies.secrets.open('stream-secret', appId, row.stream_secret);
  const { account_id: accountId, bots, api_key_hash: apiKeyHash } = row;
  return {
    credentials: { appId, accountId, bots, jwtSecret, webhookSecret, streamSecret },
    apiKeyHash,
  };
}

async function listApps({ database }: AppStoreDependencies): Promise<readonly AppSummary[]> {
  const { rows } = await database.pool.query<AppColumns>(
    'select * from apps order by created_at, app_id',
  );
  return rows.map((row) => ({
    ...toApp(row),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
  }));
}

/** Keeps the time of the first revocation. */
async function revokeApp(
  { database, clock }: AppStoreDependencies,
  appId: string,
): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    'update apps set revoked_at = coalesce(revoked_at, $2) where app_id = $1',
    [appId, clock.now()],
  );
  return rowCount === 1;
}

async function insertApp(
  { database, secrets, clock, tokenMaxTtlS }: AppStoreDependencies,
  app: NewApp,
  credentials: Omit<AppCredentials, 'jwtSecret'>,
  jwt: { readonly algorithm: App['jwtAlgorithm']; readonly key: string },
): Promise<void> {
  assertUsableIds(app);
  const { appId } = credentials;
  const secretId = `whs-${randomUUID()}`;
  const createdAt = clock.now();
  await inTransaction(database.pool, async (client) => {
    await client.query(
      `insert into apps (app_id, account_id, name, bots, scopes, jwt_algorithm, jwt_secret, api_key_hash, token_max_ttl_s,
         created_at, stream_secret, default_country, bare_numbers)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
      [
        ...[appId, app.accountId, app.name, JSON.stringify(app.bots), JSON.stringify(app.scopes)],
        ...[jwt.algorithm, secrets.seal('jwt-secret', appId, jwt.key)],
        ...[hashApiKey(credentials.apiKey), tokenMaxTtlS, createdAt],
        secrets.seal('stream-secret', appId, credentials.streamSecret),
        ...[app.defaultCountry ?? null, app.bareNumbers ?? null],
      ],
    );
    const secret = secrets.seal('webhook-secret', secretId, credentials.webhookSecret);
    await client.query(insertWebhookSecret, [secretId, appId, secret, createdAt]);
  });
}

function newAppId(): string {
  return `app-${randomUUID()}`;
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
    jwtSecret: newJwtSecret(),
    webhookSecret: newWebhookSecret(),
    streamSecret: newStreamSecret(),
  };
}

function assertUsableIds({ accountId, bots }: Pick<NewApp, 'accountId' | 'bots'>): void {
  const everyBot = bots.length === 1 && bots[0] === '*';
  const bad = [accountId, ...(everyBot ? [] : bots)].find((id) => !isId(id));
  if (bad !== undefined)
    throw new Error(`'${bad}' is not an id: letters, digits, - and _, up to 128 of them`);
  if (bots.length === 0) throw new Error('an app needs at least one bot, or * for every bot');
}
