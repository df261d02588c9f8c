// How commands reach the apps: PostgreSQL directly; the embedded database through the gateway that has it open, or
// directly while nothing runs.

import { issueToken, signerOf, signsItself } from '../api/issue-token.ts';
import { lockDataDir } from '../embedded/data-dir-lock.ts';
import { silentLogger } from '../lib/logger.ts';
import type { AppCredentials, AppSummary, NewApp } from '../store/apps.ts';
import { createAppStore } from '../store/apps.ts';
import { openDatabase } from '../store/database.ts';
import { openSecretBox } from '../store/secrets.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import { requestJson } from './http-json.ts';

export type ListedApp = Pick<AppSummary, 'appId' | 'accountId' | 'name' | 'bots' | 'scopes'> & {
  readonly revokedAt?: Date | string;
};

export type AppAccess = AsyncDisposable & {
  create(app: NewApp): Promise<AppCredentials>;
  list(): Promise<readonly ListedApp[]>;
  token(appId: string, ttlS: number): Promise<string>;
};

export async function openAppAccess(context: CliContext): Promise<AppAccess> {
  if (context.config.databaseUrl !== undefined) return await openStore(context);
  const gateway = await context.gateway();
  if (gateway === undefined) return await openStore(context);
  if (gateway.adminUrl === undefined) {
    throw new CliError('The gateway that runs here uses another database: set its DATABASE_URL.');
  }
  return throughGateway(gateway.adminUrl);
}

async function openStore({ config }: CliContext): Promise<AppAccess> {
  const { databaseUrl, secretsKey, dataDir } = config;
  const embedded = databaseUrl === undefined;
  const lock = embedded ? await lockDataDir(dataDir) : undefined;
  const secrets = await openSecretBox({
    dataDir,
    ...(secretsKey === undefined ? {} : { secretsKey }),
  });
  const database = await openDatabase({
    dataDir,
    logger: silentLogger,
    ...(embedded ? {} : { databaseUrl }),
  });
  const apps = createAppStore({ database, secrets, clock: { now: () => new Date() } });
  return {
    create: (app) => apps.createApp(app),
    list: () => apps.list(),
    token: async (appId, ttlS) => {
      const app = await apps.find(appId);
      if (app === undefined) throw new CliError(`There is no app ${appId}.`);
      const signer = signerOf(app);
      if (signer === undefined) throw new CliError(signsItself);
      return await issueToken(signer, ttlS);
    },
    [Symbol.asyncDispose]: async () => {
      await database.close();
      await lock?.release();
    },
  };
}

function throughGateway(adminUrl: string): AppAccess {
  const url = new URL(adminUrl);
  const headers = { authorization: `Bearer ${decodeURIComponent(url.password)}` };
  return {
    create: (app) =>
      requestJson<AppCredentials>(`${url.origin}/apps`, { method: 'POST', headers, body: app }),
    list: async () => {
      const answer = await requestJson<{ apps: readonly ListedApp[] }>(`${url.origin}/apps`, {
        headers,
      });
      return answer.apps;
    },
    token: async (appId, ttlS) => {
      const answer = await requestJson<{ token: string }>(
        `${url.origin}/apps/${encodeURIComponent(appId)}/token`,
        { method: 'POST', headers, body: { ttlS } },
      );
      return answer.token;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
