// Remembers, for the last hour, how many calls of each caller ID carriers blocked. For each trunk,
// the metrics show only the worst caller ID's share. A caller ID is personal or business data and
// `/metrics` needs no token, so no label contains a number, a part of it, or a hash, which anybody
// could reverse by trying all numbers. `GET /api/public/calls/callers` names the caller IDs to
// those who may see them.

import { LRUCache } from 'lru-cache';
import { upTo } from '../lib/growing-cache.ts';

const bucketMs = 600_000;
const buckets = 6;
/**
 * A caller ID with fewer calls in the hour doesn't count, because a single block would be a large
 * share of its calls.
 */
export const minCalls = 20;
/**
 * Bounds the memory to a few megabytes. Beyond this number, the caller ID that has been idle for
 * longest is forgotten.
 */
const maxCallers = 10_000;

type Bucket = { startedAt: number; calls: number; blocked: number };
type Caller = { readonly trunk: string; readonly buckets: Bucket[] };

export class CallerBlocks {
  readonly #callers = new LRUCache<string, Caller>(upTo(maxCallers));

  /** Counts a call that has ended. Times are milliseconds on any clock that never steps back. */
  note(trunk: string, caller: string, isBlocked: boolean, now: number): void {
    const key = `${trunk}\n${caller.replace(/^\++/, '')}`;
    const known = this.#callers.get(key) ?? { trunk, buckets: [] };
    const startedAt = Math.floor(now / bucketMs) * bucketMs;
    let bucket = known.buckets.at(-1);
    if (bucket?.startedAt !== startedAt) {
      bucket = { startedAt, calls: 0, blocked: 0 };
      known.buckets.push(bucket);
      if (known.buckets.length > buckets) known.buckets.shift();
    }
    bucket.calls += 1;
    if (isBlocked) bucket.blocked += 1;
    this.#callers.set(key, known);
  }

  /** Returns, by trunk, the largest share of blocked calls of any caller ID. */
  worst(now: number): ReadonlyMap<string, number> {
    const since = Math.floor(now / bucketMs) * bucketMs - (buckets - 1) * bucketMs;
    const shares = new Map<string, number>();
    for (const { trunk, buckets: all } of this.#callers.values()) {
      const recent = all.filter(({ startedAt }) => startedAt >= since);
      const calls = recent.reduce((sum, one) => sum + one.calls, 0);
      const blocked = recent.reduce((sum, one) => sum + one.blocked, 0);
      if (calls < minCalls) continue;
      shares.set(trunk, Math.max(shares.get(trunk) ?? 0, blocked / calls));
    }
    return shares;
  }
}
