// The times of a process's lease. NODE_LEASE_MS states how long the database may be away without
// costing any process its lease. The database therefore grants more than that:
//
//   last renewal       outage begins                    outage ends   next renewal
//        │  renewEveryMs     │         guaranteedMs          │ an attempt hangs, retryEveryMs │
//        ├───────────────────┼───────────────────────────────┼────────────────────────────────┤
//        └────────────────────────────── grantedMs ───────────────────────────────────────────┘
//
// In the worst case, an outage begins just before a renewal is due, and an attempt that began
// during the outage hangs until its time-out although the database is back.

export type LeaseTimes = {
  /** The longest outage of the database that costs no process its lease: NODE_LEASE_MS. */
  readonly guaranteedMs: number;
  /** How long the database grants the lease with each renewal, by its own clock. */
  readonly grantedMs: number;
  readonly renewEveryMs: number;
  /** Pause before the next attempt after a failure. */
  readonly retryEveryMs: number;
  /** After this time, an attempt counts as failed. */
  readonly attemptTimeoutMs: number;
  /** Renewals that are further apart than this have a gap between them. */
  readonly maxGapMs: number;
  /** How often a process looks for others whose leases have expired. */
  readonly lookEveryMs: number;
};

const renewalsPerLease = 8;
const looksPerLease = 8;
const retriesPerLease = 32;
/**
 * Longer than a commit on a busy server takes, including a synchronous standby, and short because
 * it prolongs the lease, and with it the time until other nodes notice that a process died.
 */
const attemptTimeoutMs = 1_500;

export function leaseTimes(guaranteedMs: number): LeaseTimes {
  const renewEveryMs = guaranteedMs / renewalsPerLease;
  const retryEveryMs = guaranteedMs / retriesPerLease;
  // Timers are late and statements take time.
  const marginMs = guaranteedMs / 32;
  const maxGapMs = renewEveryMs + attemptTimeoutMs + retryEveryMs + marginMs;
  const grantedMs = guaranteedMs + maxGapMs;
  return {
    ...{ guaranteedMs, grantedMs, maxGapMs },
    ...{ renewEveryMs, retryEveryMs, attemptTimeoutMs },
    lookEveryMs: guaranteedMs / looksPerLease,
  };
}
