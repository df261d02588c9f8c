// Gives commands access to apps, bots, data tables, nodes and calls' events. On PostgreSQL, a
// command connects directly. With the embedded database, the command asks the running gateway,
// which has the database open. If no gateway is running, the command opens the embedded database
// itself.

import {
  type AdminAnswer,
  type AdminInput,
  type AdminOperation,
  runAdminOperation,
} from '../api/admin/admin-operations.ts';
import { lockDataDir } from '../embedded/data-dir-lock.ts';
import { ProblemError } from '../http/problem.ts';
import { silentLogger } from '../lib/logger.ts';
import { createAppStore } from '../store/apps/apps.ts';
import { createBotDirectory } from '../store/apps/bot-directory.ts';
import { createPublishedCalls } from '../store/calls/published-calls.ts';
import { createDataTables } from '../store/data-tables.ts';
import { openDatabase } from '../store/database.ts';
import { useCurrentKeyIfShared } from '../store/key-rollout.ts';
import { createNodeDirectory } from '../store/nodes.ts';
import { hasEmbeddedDatabase } from '../store/pglite/pglite-server.ts';
import { createRecordingKeys } from '../store/recordings/recording-keys.ts';
import { createReencryption } from '../store/reencryption.ts';
import { openSecretBox } from '../store/secrets.ts';
import type { CliContext } from './cli-context.ts';
import { CliError, notRunning } from './cli-error.ts';
import { describeProblem, requestJson } from './http-json.ts';

export type AdminAccess = AsyncDisposable & {
  run<Name extends AdminOperation>(
    operation: Name,
    input: AdminInput<Name>,
  ): Promise<AdminAnswer<Name>>;
};

export async function openAdminAccess(context: CliContext): Promise<AdminAccess> {
  if (context.config.databaseUrl !== undefined) return await openStores(context);
  const gateway = await context.gateway();
  if (gateway === undefined) return await openStores(context);
  if (gateway.adminUrl === undefined) {
    throw new CliError(
      'The gateway that runs here uses another database. Set DATABASE_URL to that database.',
    );
  }
  return throughGateway(gateway.adminUrl);
}

async function openStores({ config }: CliContext): Promise<AdminAccess> {
  const { databaseUrl, secretsKey, previousSecretsKey, dataDir } = config;
  const embedded = databaseUrl === undefined;
  if (embedded && !hasEmbeddedDatabase(dataDir)) {
    throw new CliError(
      `${notRunning}\nIf it runs elsewhere, name its folder with DATA_DIR (here ${dataDir}), or its database with DATABASE_URL.`,
    );
  }
  const lock = embedded ? await lockDataDir(dataDir) : undefined;
  const secrets = await openSecretBox({ secretsKey, previousSecretsKey, dataDir });
  const database = await openDatabase({
    dataDir,
    logger: silentLogger,
    ...(embedded ? {} : { databaseUrl }),
  });
  const clock = { now: () => new Date() };
  const stores = {
    apps: createAppStore({ database, secrets, clock, tokenMaxTtlS: config.tokenMaxTtlS }),
    bots: createBotDirectory({ database, clock }),
    tables: createDataTables({ database, clock }),
    nodes: createNodeDirectory(database.pool, { alone: embedded }),
    secrets,
    reencryption: createReencryption(database.pool, secrets),
    publishedCalls: createPublishedCalls(database.pool),
    recordingKeys: createRecordingKeys(database.pool, () => new Date()),
  };
  await useCurrentKeyIfShared(database.pool, secrets);
  return {
    run: async (operation, input) => {
      const answer = await runAdminOperation(stores, operation, input).catch(throwAsCliError);
      // Turn dates into text, as in the gateway's responses.
      return JSON.parse(JSON.stringify(answer)) as AdminAnswer<typeof operation>;
    },
    [Symbol.asyncDispose]: async () => {
      await database.close();
      await lock?.release();
    },
  };
}

function throughGateway(adminUrl: string): AdminAccess {
  const url = new URL(adminUrl);
  const headers = { authorization: `Bearer ${decodeURIComponent(url.password)}` };
  return {
    run: (operation, input) =>
      requestJson(`${url.origin}/${operation}`, { method: 'POST', headers, body: input }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function throwAsCliError(error: unknown): never {
  if (!(error instanceof ProblemError)) throw error;
  throw new CliError(
    describeProblem(error.status, { detail: error.message, errors: error.errors }),
  );
}
