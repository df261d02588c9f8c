// Classifies database errors by what they mean for the caller. Either the data will never be
// accepted, or the same statement may succeed if repeated, or the database is unreachable.
// PostgreSQL reports a SQLSTATE (see its Appendix A), and the network reports a system error code.

/**
 * Error classes that a single row's content can cause: cardinality, data, integrity, program
 * limits.
 */
const refusedData = /^(21|22|23|54)[0-9A-Z]{3}$/;
/**
 * Serialization failure and deadlock. We exclude the rest of class 40, because with 40003 it's
 * unknown whether the statement took effect.
 */
const conflict = /^(40001|40P01)$/;
/**
 * Socket and host name errors, class 08, shutdown and start-up, too many clients, and statement or
 * lock time-outs.
 */
const unreachable =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|08[0-9A-Z]{3}|57P0[1-5]|53300|57014|55P03)$/;
/**
 * The subset of `unreachable` that can only occur while connecting: socket and host name errors,
 * and a PostgreSQL server that is starting or has no free connection.
 */
const unconnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENOENT|57P03|53300)$/;
/** A read-only server, i.e. a standby, or a primary that was configured as read-only. */
const readOnly = /^25006$/;
/** `pg`'s messages for errors that have no code. */
const unconnectedPool =
  /^(Connection terminated due to connection timeout|timeout exceeded when trying to connect)$/;
const poolFailure =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout)/;

/**
 * Drivers wrap errors, so the database's own error may be a `cause`. No driver nests deeper than
 * this.
 */
const maxDepth = 8;
const conflictRetries = 3;

/** Reports whether the database refuses the data itself. The same write would fail every time. */
export function isRefusedData(error: unknown): boolean {
  return dataRefusal(error) !== undefined;
}

/**
 * Describes why the database refuses the data.
 *
 * @returns undefined if the error is something else
 */
export function dataRefusal(error: unknown): string | undefined {
  const state = errorChain(error)
    .map(errorCode)
    .find((code) => refusedData.test(code));
  return state === undefined ? undefined : `the database refuses it (${state})`;
}

/**
 * Reports whether another session changed the same rows. In that case the statement had no effect,
 * and can be repeated immediately.
 */
export function isConflict(error: unknown): boolean {
  return errorChain(error).some((each) => conflict.test(errorCode(each)));
}

/**
 * Reports whether the database can't be reached or is too busy to respond. The statement itself may
 * be fine.
 */
export function isUnreachable(error: unknown): boolean {
  return (
    isReadOnlyServer(error) ||
    errorChain(error).some(
      (each) => unreachable.test(errorCode(each)) || poolFailure.test(each.message),
    )
  );
}

/** Reports whether the server responds but is read-only. */
export function isReadOnlyServer(error: unknown): boolean {
  return errorChain(error).some((each) => readOnly.test(errorCode(each)));
}

/**
 * Reports whether the database or the client's own time-out ended a statement that took too long.
 */
export function isStatementTimeout(error: unknown): boolean {
  return errorChain(error).some(
    (each) => errorCode(each) === '57014' || each.message.startsWith('Query read timeout'),
  );
}

/**
 * Reports whether the statement certainly had no effect, because it was never sent or the database
 * undid it. False if we can't know, e.g. after a lost response.
 */
export function isCertainlyUndone(error: unknown): boolean {
  const isUnsent = errorChain(error).some(
    (each) => unconnected.test(errorCode(each)) || unconnectedPool.test(each.message),
  );
  return isUnsent || isReadOnlyServer(error) || isRefusedData(error) || isConflict(error);
}

/** Repeats `run` after a conflict. `run` must execute a single statement or transaction. */
export async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt > conflictRetries || !isConflict(error)) throw error;
    }
  }
}

/** Reports whether the database's SQLSTATE matches `code`. */
export function hasCode(error: unknown, code: RegExp): boolean {
  return errorChain(error).some((each) => code.test(errorCode(each)));
}

function errorChain(error: unknown): Error[] {
  const chain: Error[] = [];
  let current = error;
  while (current instanceof Error && chain.length < maxDepth) {
    chain.push(current);
    current = current.cause;
  }
  return chain;
}

function errorCode(error: Error): string {
  return 'code' in error ? String(error.code) : '';
}
