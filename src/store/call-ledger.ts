// The ledger of calls: what SQL is the authority on. Accepted, taken, rung, answered, ended, published.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallLedger, Clock } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { type AcceptExtra, type AcceptResult, createCallIntake } from './call-intake.ts';
import { type CallReads, createCallReads } from './call-reads.ts';
import { createCallUpdates } from './call-updates.ts';
import type { Database } from './database.ts';
import { purgeExpired } from './retention.ts';
import type { SecretBox } from './secrets.ts';

export type StoredCallLedger = CallLedger &
  CallReads & {
    /** Durable when it resolves, exactly once for each idempotency key (kept for 24 h). */
    accept(call: AcceptedCall, extra: AcceptExtra): Promise<AcceptResult>;
    /** Deletes calls that ended before, with all that belongs to them, and expired keys and attempts. Calls deleted. */
    purge(before: Date, stopped?: AbortSignal): Promise<number>;
  };

export type CallLedgerDependencies = {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly logger: Logger;
  readonly clock: Clock;
};

export function createCallLedger(dependencies: CallLedgerDependencies): StoredCallLedger {
  const { database, secrets, logger, clock } = dependencies;
  return {
    ...createCallUpdates(database.pool, clock),
    ...createCallReads(database.pool, secrets, logger),
    accept: createCallIntake(database.pool, secrets, database.kind === 'pglite' ? 1 : 2),
    purge: (before, stopped) => purgeExpired(database, before, clock.now(), stopped),
  };
}
