// What clients of the API read as often as they like: lists, timelines, the history. They share connections that calls do not
// need, a statement of theirs ends after some seconds, and an account has only so many under way. The rest waits for a moment,
// or is refused.

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

/** What a page of a console or a dashboard asks for at once, several times over; statements of milliseconds get through in time. */
const mostWaiting = 200;
/** One half of the connections, so that an account with slow reads leaves the other half to the rest. */
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
    `The read was stopped after ${readTimeoutMs / 1_000} s. Ask for less, for example for a shorter time, or try again later.`,
    error,
  );
}
