import { LRUCache } from 'lru-cache';
import { upTo } from './growing-cache.ts';

export type LookupCache<Value> = {
  memo(key: string): Promise<Value>;
  clear(): void;
};

/**
 * Caches the result of a look-up for `ttlMs`, even if it found nothing. Concurrent look-ups for the
 * same key share one `load`. The cache is bounded because unauthenticated clients may choose keys.
 */
export function createLookupCache<Value>(
  load: (key: string) => Promise<Value>,
  options: { readonly ttlMs: number; readonly maxEntries: number },
  nowMs: () => number,
): LookupCache<Value> {
  const cache = new LRUCache<string, Promise<Value>>({
    ...upTo(options.maxEntries),
    // The library still returns an entry that is exactly `ttl` old.
    ttl: options.ttlMs - 1,
    ttlResolution: 0,
    perf: { now: nowMs },
    memoMethod: (key) => {
      const found = load(key);
      // We don't cache failures. Only callers that share this look-up see the error.
      found.catch(() => {
        if (cache.peek(key) === found) cache.delete(key);
      });
      return found;
    },
  });
  return cache;
}
