// Classifies database errors by what they mean for the caller: the data will never be accepted, the
// same statement may succeed if repeated, or the database is unreachable. PostgreSQL's errors
// contain a SQLSTATE (see Appendix A of its manual), and network errors contain a system error
// code.

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
 * Socket, TLS and host name errors, class 08, shutdown and start-up, too many clients, and
 * statement or lock time-outs.
 */
const unreachable =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|08[0-9A-Z]{3}|57P0[1-5]|53300|57014|55P03|ERR_SSL_.*)$/;
/**
 * The subset of `unreachable` that can only occur while connecting: socket and host name errors,
 * and a PostgreSQL server that is starting or has no free connection. 08001 is our own, for a
 * session that could not be prepared.
 */
const unconnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENOENT|08001|57P03|53300)$/;
/**
 * The server, or the one that has taken its place, doesn't let us in: wrong credentials, no such
 * database, or TLS failed. These errors can only occur while connecting too.
 */
const refusedConnection =
  /^(28[0-9A-Z]{3}|3D000|ERR_TLS_.*|CERT_.*|UNABLE_TO_.*|SELF_SIGNED_.*|DEPTH_ZERO_.*)$/;
const refusedTls = /^The server does not support SSL connections$/;
/** The server is read-only, i.e. a standby, or a primary that was configured as read-only. */
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

/**
 * Returns true if the database has rejected the data itself, so the same write would fail every
 * time.
 */
export function isRefusedData(error: unknown): boolean {
  return dataRefusal(error) !== undefined;
}

/**
 * Describes why the database has rejected the data.
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
 * A conflict means that another session changed the same rows. The statement didn't have any
 * effect, so it can be repeated immediately.
 */
export function isConflict(error: unknown): boolean {
  return errorChain(error).some((each) => conflict.test(errorCode(each)));
}

/**
 * True if the database can't be reached or is too busy to respond. There may be nothing wrong with
 * the statement itself.
 */
export function isUnreachable(error: unknown): boolean {
  return (
    isReadOnlyServer(error) ||
    isRefusedConnection(error) ||
    errorChain(error).some(
      (each) => unreachable.test(errorCode(each)) || poolFailure.test(each.message),
    )
  );
}

/** True if the server doesn't let this process connect at all. Waiting rarely helps. */
export function isRefusedConnection(error: unknown): boolean {
  return errorChain(error).some(
    (each) => refusedConnection.test(errorCode(each)) || refusedTls.test(each.message),
  );
}

/** True if the client gave up on a server that went silent in the middle of a statement. */
export function isSilentServer(error: unknown): boolean {
  return errorChain(error).some((each) => each.message.startsWith('Query read timeout'));
}

/** True if the server responded but is read-only, e.g. because it's a standby. */
export function isReadOnlyServer(error: unknown): boolean {
  return errorChain(error).some((each) => readOnly.test(errorCode(each)));
}

/**
 * True if a statement took too long, and either the database stopped it or the client's own
 * time-out expired.
 */
export function isStatementTimeout(error: unknown): boolean {
  return errorChain(error).some(
    (each) => errorCode(each) === '57014' || each.message.startsWith('Query read timeout'),
  );
}

/**
 * Checks that the statement didn't have any effect, because it was never sent or was rolled back.
 * False if we can't know, e.g. after a lost response.
 */
export function isCertainlyUndone(error: unknown): boolean {
  const isUnsent = errorChain(error).some(
    (each) => unconnected.test(errorCode(each)) || unconnectedPool.test(each.message),
  );
  return (
    isUnsent ||
    isRefusedConnection(error) ||
    isReadOnlyServer(error) ||
    isRefusedData(error) ||
    isConflict(error)
  );
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

/** Returns true if the database reported a SQLSTATE that matches `code`. */
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
