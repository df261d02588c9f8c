// Runs API clients' reads on connections of their own, because clients may request lists, timelines
// and the history as often as they like. A read is stopped after a few seconds, and each account
// may only run a few reads concurrently. Further reads wait for a moment before we reject them.

import type { Pool, QueryConfig, QueryResultRow } from 'pg';
import { takeTurns } from '../lib/turns.ts';
import type { Queries } from './queries.ts';
import { isStatementTimeout } from './sql-errors.ts';

/** Statement time-out for reads on PostgreSQL. PGlite can't interrupt a statement. */
export const readTimeoutMs = 5_000;

export type ReadLimits = {
  /** Says whether the limits apply to each account separately or to all accounts together. */
  readonly share: 'account' | 'all';
  readonly running: number;
  readonly waiting: number;
  readonly waitMs: number;
};

/**
 * Maximum number of waiting reads. A dashboard may load several pages simultaneously, and none of
 * them is rejected if their statements only take milliseconds.
 */
const maxWaiting = 200;
/**
 * Each account may use half of the connections, so one account's slow reads leave the other half
 * free.
 */
export const postgresReads: ReadLimits = {
  ...{ share: 'account', running: 3, waiting: maxWaiting, waitMs: 5_000 },
};
/** In between reads, PGlite's only session also has to run the calls' statements. */
export const pgliteReads: ReadLimits = {
  ...{ share: 'all', running: 1, waiting: maxWaiting, waitMs: 10_000 },
};

/**
 * Thrown if a read is too expensive or too many reads are waiting, although the database is
 * healthy.
 */
export class ReadRefusedError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = 'ReadRefusedError';
  }
}

/** Returns `Queries` for one account. */
export type Reads = (accountId: string) => Queries;

export function createReads(pool: Pool, limits: ReadLimits): Reads {
  const makeTurns = () =>
    takeTurns(
      limits,
      () => new ReadRefusedError('Too many reads are under way. Try again shortly.'),
    );
  const turnsOfAll = makeTurns();
  // The map stays small because only known accounts can read.
  const turnsByAccount = new Map<string, typeof turnsOfAll>();
  const turnsOf = (accountId: string): typeof turnsOfAll => {
    if (limits.share === 'all') return turnsOfAll;
    const turns = turnsByAccount.get(accountId) ?? makeTurns();
    turnsByAccount.set(accountId, turns);
    return turns;
  };
  return (accountId) => ({
    query: <Row extends QueryResultRow>(statement: string | QueryConfig, values?: unknown[]) =>
      turnsOf(accountId)(() => pool.query<Row>(statement, values).catch(refuseSlow)),
  });
}

function refuseSlow(error: unknown): never {
  if (!isStatementTimeout(error)) throw error;
  throw new ReadRefusedError(
    'The read took too long and was stopped. Ask for fewer rows or a shorter period, or try again later.',
    error,
  );
}
