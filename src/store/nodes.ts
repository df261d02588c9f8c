// Manages the leases of the processes that share the database. Leases use the database's clock, so
// no other clock matters. If a process doesn't renew its lease in time, it is late: another process
// asks it whether it's alive (`src/recovery/late-nodes.ts`). If it doesn't answer, the other
// process marks it as lost and takes over its calls (`expireOthers`). A lost process can never
// renew again.
//
// After a database outage, all leases have expired even though every process may be alive. That's
// why only a steady process may mark others as lost. A process is steady if its own renewals have
// arrived for NODE_LEASE_MS without a gap, because the others could have renewed in that time too.
// The statement that marks processes checks this itself, using the stored rows and the database's
// clock, because a statement sent before an outage may arrive after it.

import { leaseTimes } from '../lib/lease-times.ts';
import type { Database } from './database.ts';
import type { Queries } from './queries.ts';

export type NodeRow = {
  readonly ownerId: string;
  readonly nodeId: string;
  readonly version: string;
  readonly startedAt: Date;
  readonly renewedAt: Date;
  /** `late` means that the lease has expired but no process has taken over yet. */
  readonly state: 'up' | 'draining' | 'late' | 'lost';
  /**
   * For a lost process, the number of its calls that haven't ended yet. Otherwise the number that
   * the process last reported.
   */
  readonly calls: number;
  /** Milliseconds since the last renewal, measured by the database's clock. */
  readonly leaseAgeMs: number;
};

export type NodeDirectory = { list(): Promise<readonly NodeRow[]> };

export type NodeState = { readonly calls: number; readonly draining: boolean };

/** A process whose lease has expired, and how to ask whether it's alive. */
export type LateNode = {
  readonly ownerId: string;
  /** Base URLs of its HTTP server. Empty while it starts. */
  readonly urls: readonly string[];
  readonly questionKey: string;
  /**
   * For how long this process has been able to renew without a gap while that process's lease was
   * expired. An outage that stops both doesn't count.
   */
  readonly lateMs: number;
};

export type NodeStore = {
  register(node: {
    readonly nodeId: string;
    readonly version: string;
    /** Signs questions to this process and its answers (`src/recovery/alive-question.ts`). */
    readonly questionKey: string;
  }): Promise<void>;
  /** Stores the base URLs at which other processes may ask this one whether it's alive. */
  announce(urls: readonly string[]): Promise<void>;
  /**
   * Renews the lease. Set `afterFailure` if the previous renewal failed.
   *
   * @returns false if another process has marked this process as lost
   */
  renew(state: NodeState, how?: { readonly afterFailure: boolean }): Promise<boolean>;
  /**
   * Finds the processes that this one may mark as lost. While this process isn't steady, these are
   * only its predecessors, i.e. late processes with the same `NODE_ID` that have not renewed since
   * this process started.
   */
  findLate(): Promise<readonly LateNode[]>;
  /**
   * Marks these processes as lost and takes over their calls. Returns the owner ids of the lost
   * processes. Leaves out any process that `findLate` wouldn't find now. With `everyone`, marks all
   * other processes, whatever their leases. Use that if this process has the database to itself.
   */
  expireOthers(which: readonly string[] | 'everyone'): Promise<readonly string[]>;
  /**
   * Takes over the calls of processes that are gone, including any calls that such a process
   * claimed at the last moment. Returns the number of calls.
   */
  takeOverLeft(): Promise<number>;
  /**
   * Removes this process and its lost predecessors. Call this when the process is about to exit and
   * has nothing left to publish or send.
   */
  leave(): Promise<void>;
  /** Forgets lost processes after a day, and the takes of processes that are gone. */
  forgetLost(): Promise<void>;
};

/** Returns milliseconds as an SQL interval. */
function interval(ms: number): string {
  return `${Math.trunc(ms)} * interval '1 millisecond'`;
}

export function createNodeStore(
  { pool, leasePool }: Pick<Database, 'pool' | 'leasePool'>,
  ownerId: string,
  leaseMs: number,
): NodeStore {
  const times = leaseTimes(leaseMs);
  const lease = interval(times.grantedMs);
  const maxGap = interval(times.maxGapMs);
  // The processes that the process $1 may mark as lost: late ones if $1 is steady, and otherwise
  // its late predecessors.
  const mayExpire = `self.owner_id = $1 and self.lost_at is null
    and other.owner_id <> $1 and other.lost_at is null and other.lease_until < now() and (
      self.steady_since <= now() - ${interval(times.guaranteedMs)} and self.renewed_at >= now() - ${maxGap}
      or other.node_id = self.node_id and other.renewed_at < self.started_at)`;
  return {
    async register({ nodeId, version, questionKey }) {
      await pool.query(
        `insert into nodes (owner_id, node_id, version, started_at, renewed_at, steady_since, lease_until, calls, draining, question_key)
         values ($1, $2, $3, now(), now(), now(), now() + ${lease}, 0, false, $4)`,
        [ownerId, nodeId, version, questionKey],
      );
    },
    async announce(urls) {
      await pool.query('update nodes set urls = $2 where owner_id = $1', [ownerId, urls]);
    },
    async renew({ calls, draining }, { afterFailure } = { afterFailure: false }) {
      const renewal = {
        name: `renew a lease of ${leaseMs} ms`,
        // We use `between` because the new server's clock may be behind after a fail-over. The
        // column holds rounded milliseconds, so we round the upper bound as well.
        text: `update nodes set renewed_at = now(), lease_until = now() + ${lease}, calls = $2, draining = $3,
                 steady_since = case when $4 or renewed_at not between now() - ${maxGap} and now()::timestamptz(3)
                   then now() else steady_since end
               where owner_id = $1 and lost_at is null`,
        values: [ownerId, calls, draining, afterFailure],
        query_timeout: times.attemptTimeoutMs,
      };
      const { rowCount } = await leasePool.query(renewal);
      return rowCount === 1;
    },
    async findLate() {
      const { rows } = await pool.query<LateNode>({
        name: `late nodes after a lease of ${leaseMs} ms`,
        text: `select other.owner_id as "ownerId", other.urls, other.question_key as "questionKey",
           round(extract(epoch from now() - greatest(other.lease_until, self.steady_since)) * 1000)::double precision
             as "lateMs"
         from nodes other, nodes self where ${mayExpire}`,
        values: [ownerId],
      });
      return rows;
    },
    async expireOthers(which) {
      const isChosen =
        which === 'everyone'
          ? 'true'
          : `other.owner_id = any($2) and exists (select from nodes self where ${mayExpire})`;
      const { rows } = await pool.query<{ owner_id: string }>(
        `with lost as (
           update nodes other set lost_at = now()
           where owner_id <> $1 and lost_at is null and ${isChosen}
           returning owner_id
         ), taken_over as (
           update calls c set previous_owner_id = c.owner_id, owner_id = $1 from lost
           where c.end_published_at is null and c.not_before is null and c.owner_id = lost.owner_id
         )
         select owner_id from lost`,
        which === 'everyone' ? [ownerId] : [ownerId, which],
      );
      return rows.map((row) => row.owner_id);
    },
    async takeOverLeft() {
      const { rowCount } = await pool.query(
        `update calls set previous_owner_id = owner_id, owner_id = $1
         where end_published_at is null and not_before is null and owner_id is not null and not exists (
           select from nodes n where n.owner_id = calls.owner_id and n.lost_at is null)`,
        [ownerId],
      );
      return rowCount ?? 0;
    },
    async leave() {
      await pool.query(
        `delete from nodes where owner_id = $1
           or lost_at is not null and node_id = (select node_id from nodes where owner_id = $1)`,
        [ownerId],
      );
    },
    async forgetLost() {
      await pool.query(`delete from nodes where lost_at < now() - interval '1 day'`);
      await pool.query(
        `delete from call_takes t where not exists (select from nodes n where n.owner_id = t.owner_id)`,
      );
    },
  };
}

/**
 * `alone` means that the asking process has the database to itself, so no other process can be
 * running, even if a lease says otherwise.
 */
export type Onlooker = { readonly alone: boolean };

export function createNodeDirectory(pool: Queries, onlooker?: Onlooker): NodeDirectory {
  return { list: () => listNodes(pool, onlooker) };
}

/**
 * Lists the processes. Omits a lost process if it has no calls left and a process with the same
 * name started later.
 */
export async function listNodes(
  pool: Queries,
  { alone }: Onlooker = { alone: false },
): Promise<readonly NodeRow[]> {
  const { rows } = await pool.query<NodeRow>(
    `select owner_id as "ownerId", node_id as "nodeId", version, started_at as "startedAt",
       renewed_at as "renewedAt", case when is_lost then left_calls else calls end as calls,
       round(extract(epoch from greatest(now() - renewed_at, interval '0')) * 1000)::double precision as "leaseAgeMs",
       case when is_lost then 'lost' when lease_until < now() then 'late'
         when draining then 'draining' else 'up' end as state
     from nodes
     cross join lateral (select lost_at is not null or $1::boolean as is_lost) as fate
     left join lateral (
       select count(*)::integer as left_calls from calls
       where calls.end_published_at is null and calls.not_before is null and calls.ended_at is null
         and coalesce(calls.previous_owner_id, calls.owner_id) = nodes.owner_id
     ) as remainder on is_lost
     where not is_lost or left_calls > 0 or not exists (
       select from nodes next where next.node_id = nodes.node_id and next.started_at > nodes.started_at)
     order by started_at, owner_id`,
    [alone],
  );
  return rows;
}
