// What an error of the database means for its caller: this data is never taken, the same again may succeed at once, or
// the database is unreachable. PostgreSQL says it in a SQLSTATE (its Appendix A), the network in a code of the system.

/** Classes that one row's content can cause: cardinality, data, integrity, program limits. */
const refusedData = /^(21|22|23|54)[0-9A-Z]{3}$/;
/** Serialization failure, deadlock. Not the rest of class 40: 40003 does not say whether the statement took effect. */
const conflict = /^(40001|40P01)$/;
/** Sockets and names; class 08, shutdown and start-up; too many clients, a time-out of a statement or a lock. */
const away =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|08[0-9A-Z]{3}|57P0[1-5]|53300|57014|55P03)$/;
/** Of these, what only a new connection fails with: the socket, its name, PostgreSQL that starts or has no room. */
const unconnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENOENT|57P03|53300)$/;
/** A server that only reads: a standby, or a primary that was told to be read only. */
const readOnly = /^25006$/;
/** `pg` has no code for these, and words are all it gives. */
const unconnectedPool =
  /^(Connection terminated due to connection timeout|timeout exceeded when trying to connect)$/;
const poolFailure =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout)/;

/** Drivers wrap: the database's own error is the cause of a query's error. Deeper than any of them nests. */
const maxDepth = 8;
const conflictRetries = 3;

/** The data is what is wrong: it fails in the same way each time. */
export function isRefusedData(error: unknown): boolean {
  return dataRefusal(error) !== undefined;
}

/** Of refused data: that, in words. */
export function dataRefusal(error: unknown): string | undefined {
  const state = chainOf(error)
    .map(codeOf)
    .find((code) => refusedData.test(code));
  return state === undefined ? undefined : `the database refuses it (${state})`;
}

/** Another session changed the same rows: the statement did nothing, and may be tried again at once. */
export function isConflict(error: unknown): boolean {
  return chainOf(error).some((each) => conflict.test(codeOf(each)));
}

/** The database cannot be reached, or is too busy to answer: nothing is wrong with what was asked. */
export function isUnreachable(error: unknown): boolean {
  return (
    isReadOnlyServer(error) ||
    chainOf(error).some((each) => away.test(codeOf(each)) || poolFailure.test(each.message))
  );
}

/** The server answers, and stores nothing. */
export function isReadOnlyServer(error: unknown): boolean {
  return chainOf(error).some((each) => readOnly.test(codeOf(each)));
}

/** The database, or our patience, ended a statement that took too long. */
export function isStatementTimeout(error: unknown): boolean {
  return chainOf(error).some(
    (each) => codeOf(each) === '57014' || each.message.startsWith('Query read timeout'),
  );
}

/** It never left for the database, or the database undid it. False: it is not known, as where the answer is lost. */
export function isCertainlyUndone(error: unknown): boolean {
  const isUnsent = chainOf(error).some(
    (each) => unconnected.test(codeOf(each)) || unconnectedPool.test(each.message),
  );
  return isUnsent || isReadOnlyServer(error) || isRefusedData(error) || isConflict(error);
}

/** `run` is one statement, or one transaction. */
export async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt > conflictRetries || !isConflict(error)) throw error;
    }
  }
}

/** The database refused with a SQLSTATE that matches. */
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
