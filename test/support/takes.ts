// Takes of a process, with the check by the calling rules.

import type { Pool } from 'pg';
import type { CallTakes } from '../../src/calls/dialout-ports.ts';
import { createCallTakes } from '../../src/store/calls/call-takes.ts';
import { createPermits, type PermitOptions, type Permits } from '../../src/store/rules/permits.ts';

export function takesOf(
  pool: Pool,
  ownerId: string,
  options: Partial<PermitOptions> = {},
): CallTakes {
  return createCallTakes(pool, ownerId, permitsOf(pool, ownerId, options));
}

export function permitsOf(
  pool: Pool,
  ownerId: string,
  options: Partial<PermitOptions> = {},
): Permits {
  return createPermits(pool, ownerId, {
    clock: { now: () => new Date() },
    maxHeldPerAccount: 1_000,
    ...options,
  });
}
