// Opens the database, i.e. PostgreSQL or the embedded PGlite, and the stores on top of it.

import type { AdminStores } from '../api/admin/admin-operations.ts';
import type { CallTakes, SecondLegTakes } from '../calls/dialout-ports.ts';
import type { SuppressionCheck } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { createAppStore } from '../store/apps/apps.ts';
import { createBotDirectory } from '../store/apps/bot-directory.ts';
import { ensureDevApp } from '../store/apps/dev-app.ts';
import { devAccountId } from '../store/apps/dev-app-file.ts';
import { type CallLedger, createCallLedger } from '../store/calls/call-ledger.ts';
import { createCallTakes } from '../store/calls/call-takes.ts';
import { createPublishedCalls } from '../store/calls/published-calls.ts';
import { createSecondLegTakes } from '../store/calls/second-leg-takes.ts';
import { createDataTables } from '../store/data-tables.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { createNodeDirectory } from '../store/nodes.ts';
import { createRecordingKeys } from '../store/recordings/recording-keys.ts';
import { countForeignSecrets, createReencryption } from '../store/reencryption.ts';
import { type CallRecords, createCallRecords } from '../store/rules/call-records.ts';
import { type Campaigns, createCampaigns } from '../store/rules/campaigns.ts';
import { createPermits } from '../store/rules/permits.ts';
import { createSuppressedCalls, type SuppressedCalls } from '../store/rules/suppressed-calls.ts';
import { createSuppressionCheck } from '../store/rules/suppression-check.ts';
import { createSuppressions, type Suppressions } from '../store/rules/suppressions.ts';
import { openSecretBox, type SecretBox } from '../store/secrets.ts';
import type { Environment } from './environment.ts';

export type Storage = AdminStores & {
  readonly database: Database;
  readonly ledger: CallLedger;
  readonly takes: CallTakes;
  readonly secondLegTakes: SecondLegTakes;
  readonly suppressions: Suppressions;
  readonly suppressedCalls: SuppressedCalls;
  readonly suppressionCheck: SuppressionCheck;
  readonly records: CallRecords;
  readonly campaigns: Campaigns;
  /**
   * After a database sweep that found nothing, the next one may wait for up to this long, in ms.
   * This is 0 (no wait) if other processes write to the database too.
   */
  readonly maxRestMs: number;
};

/**
 * Sweeps of the embedded database can rest, because only this process writes to the database, and
 * it wakes the sweeps when it does.
 */
const maxRestMs = 30_000;

export async function openStorage({
  config,
  logger,
  clock,
  closers,
  onFatal,
}: Environment): Promise<Storage> {
  const { databaseUrl, dataDir, secretsKey, previousSecretsKey } = config;
  const database = await openDatabase({
    dataDir,
    logger,
    onFatal,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  // The embedded database needs this time to write a checkpoint.
  closers.add('database', () => database.close(), { reservedMs: 1_000 });
  const secrets = await openSecretBox({ secretsKey, previousSecretsKey, dataDir });
  await refuseForeignSecrets(database, secrets, logger);
  const apps = createAppStore({
    ...{ database, secrets, clock },
    tokenMaxTtlS: config.tokenMaxTtlS,
  });
  // With the embedded database, we start with an app that can do everything. With PostgreSQL,
  // operators create the apps.
  if (databaseUrl === undefined) await ensureDevApp(apps, dataDir);
  const bots = createBotDirectory({
    database,
    clock,
    ...(databaseUrl === undefined ? { ownerOfUnknown: devAccountId } : {}),
  });
  const permits = createPermits(database.pool, config.ownerId, {
    clock,
    maxHeldPerAccount: config.calls.maxHeldPerAccount,
  });
  return {
    database,
    apps,
    bots,
    tables: createDataTables({ database, clock }),
    nodes: createNodeDirectory(database.pool),
    secrets,
    reencryption: createReencryption(database.pool, secrets),
    publishedCalls: createPublishedCalls(database.pool),
    recordingKeys: createRecordingKeys(database.pool, () => clock.now()),
    ledger: createCallLedger({
      ...{ database, secrets, logger, clock },
      taker: { ownerId: config.ownerId, permits },
    }),
    takes: createCallTakes(database.pool, config.ownerId, permits),
    secondLegTakes: createSecondLegTakes(database.pool, config.ownerId),
    suppressions: createSuppressions(database),
    suppressedCalls: createSuppressedCalls(database.pool),
    suppressionCheck: createSuppressionCheck(database.pool, logger),
    records: createCallRecords(database),
    campaigns: createCampaigns(database),
    maxRestMs: databaseUrl === undefined ? maxRestMs : 0,
  };
}

/**
 * Without its app's secrets, every request of an app would fail, so we'd rather not start. Other
 * secrets concern one bot or connection.
 */
async function refuseForeignSecrets(
  { pool }: Database,
  secrets: SecretBox,
  logger: Logger,
): Promise<void> {
  const foreign = await countForeignSecrets(pool, secrets);
  const required = foreign.filter(({ isRequired }) => isRequired);
  if (required.length > 0) {
    const found = required.map(
      ({ column, count, keyId }) => `${count} in ${column} (key ${keyId})`,
    );
    throw new Error(
      `SECRETS_KEY does not open stored secrets: ${found.join(', ')}. Set the key that does as SECRETS_KEY_PREVIOUS.`,
    );
  }
  for (const { column, count, keyId } of foreign) {
    logger.warn({ column, count, keyId }, 'SECRETS_KEY does not open some stored secrets');
  }
}
