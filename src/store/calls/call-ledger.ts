// Accepts, reads and deletes calls. Everything that happens in between is stored by `outbox`.

import type { CallIntake } from '../../calls/dialout-ports.ts';
import type { Clock } from '../../calls/ports.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Database } from '../database.ts';
import { purgeExpired } from '../retention.ts';
import type { SecretBox } from '../secrets.ts';
import { createCallIntake, type TakerOfCalls } from './call-intake.ts';
import { type CallReads, createCallReads } from './call-reads.ts';

export type CallLedger = CallReads &
  CallIntake & {
    /**
     * Deletes calls that ended before `before`, along with all their data, and expired keys and
     * attempts. Returns the number of deleted calls.
     */
    purge(before: Date, stopped?: AbortSignal): Promise<number>;
  };

export type CallLedgerDependencies = {
  readonly database: Pick<Database, 'kind' | 'pool'>;
  readonly taker?: TakerOfCalls;
  readonly secrets: SecretBox;
  readonly logger: Logger;
  readonly clock: Clock;
};

export function createCallLedger(dependencies: CallLedgerDependencies): CallLedger {
  const { database, taker, secrets, logger, clock } = dependencies;
  return {
    ...createCallReads(database.pool, secrets, logger),
    ...createCallIntake(database.pool, secrets, database.kind === 'pglite' ? 1 : 2, taker),
    purge: (before, stopped) =>
      purgeExpired(database, logger, { before, now: clock.now(), stopped }),
  };
}
