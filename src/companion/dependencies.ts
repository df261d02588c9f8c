// What the companion's areas depend on.

import type { Config } from '../config.ts';
import type { EventConnection } from '../events/connection.ts';
import type { Logger } from '../lib/logger.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';
import type { Database } from '../store/database.ts';
import type { SecretBox } from '../store/secrets.ts';

export type CompanionDependencies = {
  readonly config: Pick<Config, 'http' | 'retention'>;
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly bots: BotDirectory;
  readonly events: EventConnection;
  readonly clock: { now(): Date };
  readonly logger: Logger;
};
