// The ledger of calls: what SQL is the authority on. Accepted, taken, rung, answered, ended, published.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallLedger, Clock } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import { type AcceptExtra, type AcceptResult, createCallIntake } from './call-intake.ts';
import { type CallReads, createCallReads } from './call-reads.ts';
import { createCallUpdates } from './call-updates.ts';
import type { Database } from './database.ts';
import { purgeExpired } from './retention.ts';
import type { SecretBox } from './secrets.ts';

export type StoredCallLedger = CallLedger &
  Omit<CallReads, 'waiting' | 'expired'> & {
    /** Durable when it resolves, exactly once for each idempotency key (kept for 24 h). */
    accept(call: AcceptedCall, extra: AcceptExtra): Promise<AcceptResult>;
    /** Accepted before that instant, and nobody has taken them, but for those of some trunks; oldest first. */
    waiting(
      acceptedBefore: Date,
      limit: number,
      exceptTrunks: readonly string[],
    ): Promise<readonly CallId[]>;
    /** Nobody has taken them, and they are not to be dialled any more; oldest first. */
    expired(limit: number): Promise<readonly CallId[]>;
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
  const { doubtfulClaims, ...updates } = createCallUpdates(database.pool, clock);
  const reads = createCallReads(database.pool, secrets, logger);
  return {
    ...updates,
    ...reads,
    accept: createCallIntake(database.pool, secrets, database.kind === 'pglite' ? 1 : 2),
    waiting: (acceptedBefore, limit, exceptTrunks) =>
      reads.waiting(acceptedBefore, limit, exceptTrunks, doubtfulClaims()),
    expired: (limit) => reads.expired(clock.now(), limit, doubtfulClaims()),
    purge: (before, stopped) => purgeExpired(database, before, clock.now(), stopped),
  };
}
