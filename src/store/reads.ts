// Reads by API clients, which may ask as often as they like for lists, timelines and the history.
// Reads have their own connections. A read's statement is stopped after some seconds, and an
// account may run only a few at once. Further reads wait for a moment, and are then refused.

import type { Pool, QueryConfig, QueryResultRow } from 'pg';
import { takeTurns } from '../lib/turns.ts';
import type { Queries } from './queries.ts';
import { isStatementTimeout } from './sql-errors.ts';

/** The time limit for a read's statement on PostgreSQL. PGlite cannot interrupt a statement. */
export const readTimeoutMs = 5_000;

export type ReadLimits = {
  /**
   * The scope of the limits: the statements of each account, or the statements of all accounts
   * together.
   */
  readonly share: 'account' | 'all';
  readonly running: number;
  readonly waiting: number;
  readonly waitMs: number;
};

/**
 * How many reads may wait. Several pages of a dashboard load at once, and all get through if a
 * statement takes milliseconds.
 */
const maxWaiting = 200;
/**
 * Half of the connections for each account: slow reads of one account leave the other half free.
 */
export const postgresReads: ReadLimits = {
  ...{ share: 'account', running: 3, waiting: maxWaiting, waitMs: 5_000 },
};
/** PGlite's one session runs the statements of calls in between. */
export const pgliteReads: ReadLimits = {
  ...{ share: 'all', running: 1, waiting: maxWaiting, waitMs: 10_000 },
};

/** Thrown if a read is too expensive, or if too many reads wait, while the database is healthy. */
export class ReadRefusedError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = 'ReadRefusedError';
  }
}

/** Returns the queries of one account. */
export type Reads = (accountId: string) => Queries;

export function createReads(pool: Pool, limits: ReadLimits): Reads {
  const makeTurns = () =>
    takeTurns(
      limits,
      () => new ReadRefusedError('Too many reads are under way. Try again shortly.'),
    );
  const turnsOfAll = makeTurns();
  // Has one entry for each account. Only known accounts can read, so the map stays small.
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
