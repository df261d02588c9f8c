// The ledger of calls: accepting them, reading them, forgetting them. What happens to them in between is in `outbox`.

import type { AcceptedCall } from '../../calls/call-types.ts';
import type { Clock } from '../../calls/ports.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Database } from '../database.ts';
import { purgeExpired } from '../retention.ts';
import type { SecretBox } from '../secrets.ts';
import { type AcceptExtra, type AcceptResult, createCallIntake } from './call-intake.ts';
import { type CallReads, createCallReads } from './call-reads.ts';

export type CallLedger = CallReads & {
  /** Durable when it resolves so, exactly once for each idempotency key (kept for 24 h). @throws Error where it is not known. */
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

export function createCallLedger(dependencies: CallLedgerDependencies): CallLedger {
  const { database, secrets, logger, clock } = dependencies;
  return {
    ...createCallReads(database.pool, secrets, logger),
    accept: createCallIntake(database.pool, secrets, database.kind === 'pglite' ? 1 : 2),
    purge: (before, stopped) => purgeExpired(database, before, clock.now(), stopped),
  };
}
