import { LRUCache } from 'lru-cache';

export type LookupCache<Value> = {
  memo(key: string): Promise<Value>;
  clear(): void;
};

/**
 * Remembers the result of a look-up for `ttlMs`, even if it found nothing. Callers that ask for the
 * same key share one look-up. The cache is bounded because unknown callers may choose the keys.
 */
export function createLookupCache<Value>(
  load: (key: string) => Promise<Value>,
  options: { readonly ttlMs: number; readonly maxEntries: number },
  nowMs: () => number,
): LookupCache<Value> {
  const cache = new LRUCache<string, Promise<Value>>({
    max: options.maxEntries,
    // The library still returns an entry whose age is exactly `ttl`.
    ttl: options.ttlMs - 1,
    ttlResolution: 0,
    perf: { now: nowMs },
    memoMethod: (key) => {
      const found = load(key);
      // Failures are not cached. Only the callers that share this look-up see one.
      found.catch(() => {
        if (cache.peek(key) === found) cache.delete(key);
      });
      return found;
    },
  });
  return cache;
}
