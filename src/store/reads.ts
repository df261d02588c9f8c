// What clients of the API read as often as they like: lists, timelines, the history. Reads have
// connections of their own, a statement of theirs ends after some seconds, and an account has only
// so many under way. The next ones wait for a moment, or are refused.

import type { Pool, QueryConfig, QueryResultRow } from 'pg';
import { takeTurns } from '../lib/turns.ts';
import type { Queries } from './queries.ts';
import { isStatementTimeout } from './sql-errors.ts';

/** A read's statement on PostgreSQL. PGlite cannot interrupt one. */
export const readTimeoutMs = 5_000;

export type ReadLimits = {
  /** Statements under way at once: for each account, or for all together. */
  readonly share: 'account' | 'all';
  readonly running: number;
  readonly waiting: number;
  readonly waitMs: number;
};

/** Several pages of a dashboard at once: where a statement takes milliseconds, all get through. */
const mostWaiting = 200;
/** Half of the connections: the slow reads of one account leave the other half to the rest. */
export const postgresReads: ReadLimits = {
  ...{ share: 'account', running: 3, waiting: mostWaiting, waitMs: 5_000 },
};
/** Its one session has the calls' statements in between. */
export const pgliteReads: ReadLimits = {
  ...{ share: 'all', running: 1, waiting: mostWaiting, waitMs: 10_000 },
};

/** The database is well, and this read is too much for it. */
export class ReadRefusedError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = 'ReadRefusedError';
  }
}

/** By account. */
export type Reads = (accountId: string) => Queries;

export function createReads(pool: Pool, limits: ReadLimits): Reads {
  const makeTurns = () =>
    takeTurns(
      limits,
      () => new ReadRefusedError('Too many reads are under way. Try again shortly.'),
    );
  const turnsOfAll = makeTurns();
  // As many as there are accounts: who reads is known.
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
    'The read takes too long and was stopped. Ask for less, or for a shorter time, or try again later.',
    error,
  );
}
