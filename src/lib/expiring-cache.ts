// Remembers what a look-up gave for a few seconds, also that there was nothing; look-ups of the same key share one query. Keys
// may come from tokens of unknown callers.

import { BoundedMap } from './bounded-map.ts';

type Entry<Value> = { readonly value: Promise<Value>; readonly expiresAtMs: number };

export class ExpiringCache<Value> {
  readonly #entries: BoundedMap<string, Entry<Value>>;
  readonly #load: (key: string) => Promise<Value>;
  readonly #timeToLiveMs: number;
  readonly #nowMs: () => number;

  constructor(
    load: (key: string) => Promise<Value>,
    options: { readonly timeToLiveMs: number; readonly maxEntries: number },
    nowMs: () => number,
  ) {
    this.#entries = new BoundedMap(options.maxEntries);
    this.#load = load;
    this.#timeToLiveMs = options.timeToLiveMs;
    this.#nowMs = nowMs;
  }

  get(key: string): Promise<Value> {
    const now = this.#nowMs();
    const known = this.#entries.get(key);
    if (known !== undefined && known.expiresAtMs > now) return known.value;
    const value = this.#load(key);
    const entry = { value, expiresAtMs: now + this.#timeToLiveMs };
    this.#entries.set(key, entry);
    // A failure is not remembered; those that asked get it.
    value.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    return value;
  }

  clear(): void {
    this.#entries.clear();
  }
}
