// Bounds for the large caches of `lru-cache`.

/** How many entries a cache may hold. */
type EntryBounds = { readonly maxSize: number; readonly sizeCalculation: () => number };

const one = (): number => 1;

/**
 * Returns options for a cache of at most `entries` entries, whose memory grows with its entries.
 * With the option `max`, the library reserves 22 bytes for each possible entry right away, which
 * adds up to 3 MB in an idle gateway.
 */
export function upTo(entries: number): EntryBounds {
  return { maxSize: entries, sizeCalculation: one };
}
