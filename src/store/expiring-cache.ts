// Remembers what a look-up gave for a few seconds, also that there was nothing; look-ups of the same key share one query.

type Entry<Value> = { readonly value: Promise<Value>; readonly expiresAtMs: number };

export class ExpiringCache<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #load: (key: string) => Promise<Value>;
  readonly #options: { readonly timeToLiveMs: number; readonly maxEntries: number };
  readonly #nowMs: () => number;

  constructor(
    load: (key: string) => Promise<Value>,
    options: { readonly timeToLiveMs: number; readonly maxEntries: number },
    nowMs: () => number,
  ) {
    this.#load = load;
    this.#options = options;
    this.#nowMs = nowMs;
  }

  get(key: string): Promise<Value> {
    const now = this.#nowMs();
    const known = this.#entries.get(key);
    if (known !== undefined && known.expiresAtMs > now) return known.value;
    const value = this.#load(key);
    this.#entries.delete(key);
    this.#makeRoom();
    const entry = { value, expiresAtMs: now + this.#options.timeToLiveMs };
    this.#entries.set(key, entry);
    // A failure is not remembered; whoever asked gets it.
    value.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    return value;
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Keys come from strangers' tokens: the oldest goes. */
  #makeRoom(): void {
    if (this.#entries.size < this.#options.maxEntries) return;
    const oldest = this.#entries.keys().next();
    if (oldest.done !== true) this.#entries.delete(oldest.value);
  }
}
