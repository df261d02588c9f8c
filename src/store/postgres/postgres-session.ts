// Prepares each new connection to PostgreSQL before its first use. One statement sets the time-outs
// and finds out whether the server is a standby. We can't send the time-outs with the request to
// connect, because PgBouncer refuses such a request.

import { Client, type ClientBase, type PoolConfig } from 'pg';
import { isCertainlyUndone } from '../sql-errors.ts';

/** A server's own limits, in ms. */
export type SessionLimits = Required<
  Pick<PoolConfig, 'statement_timeout' | 'lock_timeout' | 'idle_in_transaction_session_timeout'>
>;

/** SQLSTATEs: `read_only_sql_transaction`, `sqlclient_unable_to_establish_sqlconnection`. */
const sqlStates = { readOnly: '25006', unconnected: '08001' } as const;

/** The server was reached, but its session can't be used. Nothing of the caller's was sent. */
class SessionError extends Error {
  readonly code: string;

  constructor(message: string, code: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = 'SessionError';
    this.code = code;
  }
}

type OnConnected = ((error: Error) => void) | ((error: null, client: Client) => void);

/**
 * A client whose errors while connecting say that nothing was sent. `pg` reports a lost connection
 * with the same error before and after that. Behind HAProxy, a server that has gone looks like a
 * lost connection.
 */
export class SessionClient extends Client {
  override connect(): Promise<Client>;
  override connect(onConnected: OnConnected): void;
  override connect(onConnected?: OnConnected): Promise<Client> | undefined {
    if (onConnected === undefined) return super.connect();
    const report = onConnected as (error: Error | null, client?: Client) => void;
    super.connect((error: Error | null) => {
      if (error === null) report(null, this);
      else report(isCertainlyUndone(error) ? error : unconnected(error));
    });
    return undefined;
  }
}

function unconnected(cause: Error): SessionError {
  return new SessionError('the connection could not be opened', sqlStates.unconnected, cause);
}

/**
 * Sets the limits.
 *
 * @returns whether the session is read-only. It may stay so when the server is writable again.
 * @throws SessionError if the server is a standby, or doesn't answer within `timeoutMs`
 */
export async function prepareSession(
  client: ClientBase,
  limits: SessionLimits,
  timeoutMs: number,
): Promise<{ readonly isReadOnly: boolean }> {
  const settings = Object.entries(limits).map(
    ([name, value]) => `set_config('${name}', '${value}', false)`,
  );
  const statement = {
    text: `select pg_is_in_recovery() as is_standby,
             current_setting('transaction_read_only')::boolean as is_read_only, ${settings.join(', ')}`,
    query_timeout: timeoutMs,
  };
  const { rows } = await client
    .query<{ is_standby: boolean; is_read_only: boolean }>(statement)
    .catch((cause: unknown) => {
      throw new SessionError('a new session could not be prepared', sqlStates.unconnected, cause);
    });
  const [session] = rows;
  if (session?.is_standby !== false) {
    throw new SessionError('the server is a standby', sqlStates.readOnly);
  }
  return { isReadOnly: session.is_read_only };
}

/** Rounds of four statements each. Other clients of a pooler can hide a switch in some of them. */
const rounds = 5;

/**
 * Finds out whether a pooler shares sessions between clients, as PgBouncer does in its modes
 * `transaction` and `statement`. Prepared statements and time-outs belong to a session, so they
 * would get lost or reach other clients.
 *
 * PostgreSQL tells a client the id of its process when it connects. A pooler answers with an id of
 * its own. Only then do we ask the server for the id several times: in a session of its own, a
 * client always gets the same answer, and no other client gets it too.
 */
export async function hasSharedSessions(one: ClientBase, other: ClientBase): Promise<boolean> {
  const ofOne = await processIdOf(one);
  if ('processID' in one && one.processID === ofOne) return false;
  const ofOther = await processIdOf(other);
  if (ofOne === ofOther) return true;
  // Each client asks twice in a row, because a pooler may use its connections in turn.
  const order = Array.from({ length: rounds }, () => [one, one, other, other]).flat();
  for (const client of order) {
    const expected = client === one ? ofOne : ofOther;
    if ((await processIdOf(client)) !== expected) return true;
  }
  return false;
}

/** What an operator can do about shared sessions. */
export const sharedSessionsProblem =
  'DATABASE_URL: the pooler there shares its sessions between clients, as PgBouncer does with pool_mode = transaction or statement. Set pool_mode = session, or connect to PostgreSQL directly';

async function processIdOf(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return (rows[0] as { pid: number }).pid;
}
