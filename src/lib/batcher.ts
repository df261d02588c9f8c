// Implements group commit, which means that items that arrive while a batch is being written share
// the next batch. Under light load each item is written immediately, and under heavy load one
// statement writes many items. We never delay a write with a timer.

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

export type BatcherOptions = {
  /** Bounds the size of the statement by limiting the items in one batch. */
  readonly maxBatch: number;
  /** Bounds memory. If this many items are waiting, we reject any further item. */
  readonly maxWaiting: number;
  /** Maximum number of concurrent writes. */
  readonly concurrency: number;
  /**
   * If true, all items added during one turn of the event loop share a batch, even with promises
   * between them. By default, only items added before the next microtask do.
   */
  readonly wholeTurns?: boolean;
};

/** An item was rejected because too many items are waiting. */
export class BatchQueueFullError extends Error {}

/**
 * Writes items in batches. `write` receives the items in arrival order and must return one result
 * per item, in the same order. If it throws, every item in the batch is rejected.
 */
export class Batcher<Item, Result> {
  readonly #waiting: Waiting<Item, Result>[] = [];
  readonly #write: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #options: BatcherOptions;
  #running = 0;
  #isPumpDue = false;

  constructor(
    write: (items: readonly Item[]) => Promise<readonly Result[]>,
    options: BatcherOptions,
  ) {
    this.#write = write;
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    if (this.#waiting.length >= this.#options.maxWaiting) {
      return Promise.reject(
        new BatchQueueFullError(`batch queue is full (${this.#options.maxWaiting} waiting)`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#pumpSoon();
    });
  }

  /** Starts a bit later so that items added together share a batch. */
  #pumpSoon(): void {
    if (this.#options.wholeTurns !== true) {
      queueMicrotask(() => this.#pump());
      return;
    }
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    setImmediate(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#running < this.#options.concurrency && this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#options.maxBatch);
      this.#running += 1;
      this.#run(batch)
        .catch((error: unknown) => {
          for (const waiting of batch) waiting.reject(error);
        })
        .finally(() => {
          this.#running -= 1;
          this.#pump();
        });
    }
  }

  async #run(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const results = await this.#write(batch.map((waiting) => waiting.item));
    if (results.length !== batch.length) {
      throw new Error(`a batch of ${batch.length} items returned ${results.length} results`);
    }
    // Safe: we've just checked that the lengths match.
    for (const [index, waiting] of batch.entries()) waiting.resolve(results[index] as Result);
  }
}
