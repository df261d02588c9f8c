// Classifies database errors by what they mean for the caller: the data will never be accepted, the
// same statement may succeed if repeated, or the database is unreachable. PostgreSQL reports a
// SQLSTATE (its Appendix A), and the network a system error code.

/** Error classes that one row's content can cause: cardinality, data, integrity, program limits. */
const refusedData = /^(21|22|23|54)[0-9A-Z]{3}$/;
/**
 * Serialization failure and deadlock. The rest of class 40 is excluded: 40003 does not say whether
 * the statement took effect.
 */
const conflict = /^(40001|40P01)$/;
/**
 * Errors of sockets and host names; class 08, shutdown and start-up; too many clients; time-outs of
 * a statement or a lock.
 */
const unreachable =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|08[0-9A-Z]{3}|57P0[1-5]|53300|57014|55P03)$/;
/**
 * The subset of `unreachable` that can only occur while connecting: the socket, the host name, or a
 * PostgreSQL that is starting or has no free connection.
 */
const unconnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENOENT|57P03|53300)$/;
/** A read-only server: a standby, or a primary that was configured as read-only. */
const readOnly = /^25006$/;
/** Messages of `pg` for errors that have no code. */
const unconnectedPool =
  /^(Connection terminated due to connection timeout|timeout exceeded when trying to connect)$/;
const poolFailure =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout)/;

/**
 * Drivers wrap errors: the database's own error is the cause of a query's error. No driver nests
 * deeper than this.
 */
const maxDepth = 8;
const conflictRetries = 3;

/** Reports whether the database refuses the data itself. The same write would fail each time. */
export function isRefusedData(error: unknown): boolean {
  return dataRefusal(error) !== undefined;
}

/**
 * Describes why the database refuses the data.
 *
 * @returns undefined if the error is something else
 */
export function dataRefusal(error: unknown): string | undefined {
  const state = chainOf(error)
    .map(codeOf)
    .find((code) => refusedData.test(code));
  return state === undefined ? undefined : `the database refuses it (${state})`;
}

/**
 * Reports whether another session changed the same rows. The statement did nothing, and may be
 * repeated immediately.
 */
export function isConflict(error: unknown): boolean {
  return chainOf(error).some((each) => conflict.test(codeOf(each)));
}

/**
 * Reports whether the database cannot be reached, or is too busy to answer. The statement itself
 * may be fine.
 */
export function isUnreachable(error: unknown): boolean {
  return (
    isReadOnlyServer(error) ||
    chainOf(error).some((each) => unreachable.test(codeOf(each)) || poolFailure.test(each.message))
  );
}

/** Reports whether the server answers but is read-only. */
export function isReadOnlyServer(error: unknown): boolean {
  return chainOf(error).some((each) => readOnly.test(codeOf(each)));
}

/**
 * Reports whether the database or the client's own time-out ended a statement that took too long.
 */
export function isStatementTimeout(error: unknown): boolean {
  return chainOf(error).some(
    (each) => codeOf(each) === '57014' || each.message.startsWith('Query read timeout'),
  );
}

/**
 * Reports whether the statement certainly had no effect: it never left for the database, or the
 * database undid it. False if this is unknown, for example after a lost answer.
 */
export function isCertainlyUndone(error: unknown): boolean {
  const isUnsent = chainOf(error).some(
    (each) => unconnected.test(codeOf(each)) || unconnectedPool.test(each.message),
  );
  return isUnsent || isReadOnlyServer(error) || isRefusedData(error) || isConflict(error);
}

/** Repeats `run` after a conflict. `run` must be one statement or one transaction. */
export async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt > conflictRetries || !isConflict(error)) throw error;
    }
  }
}

/** Reports whether the database refused with a SQLSTATE that matches `code`. */
export function hasCode(error: unknown, code: RegExp): boolean {
  return chainOf(error).some((each) => code.test(codeOf(each)));
}

function chainOf(error: unknown): Error[] {
  const chain: Error[] = [];
  let current = error;
  while (current instanceof Error && chain.length < maxDepth) {
    chain.push(current);
    current = current.cause;
  }
  return chain;
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : '';
}
