// Group commit: items that arrive while a batch is being written share the next batch. Under light
// load, each item is written immediately. Under heavy load, one statement carries many items. No
// write waits for a timer.

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

export type BatcherOptions = {
  /** Maximum number of items in one batch. Bounds the size of the statement. */
  readonly maxBatch: number;
  /** Maximum number of waiting items. Bounds memory: the next item is rejected. */
  readonly maxWaiting: number;
  /** Maximum number of batches that are written at the same time. */
  readonly concurrency: number;
  /**
   * If true, all items that are added in one turn of the event loop share a batch, however many
   * promises lie between them. By default, only items added before the next microtask do.
   */
  readonly wholeTurns?: boolean;
};

/** The batcher refused the item because too many items wait. */
export class BatchQueueFullError extends Error {}

/**
 * Writes items in batches. `write` gets the items in the order of their arrival and returns one
 * result for each, in the same order. If `write` throws, every item of its batch is rejected.
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

  /** Delays the start, so that items added together share a batch. */
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
      throw new Error(`batch of ${batch.length} gave ${results.length} results`);
    }
    // The length was checked, so every index exists.
    for (const [index, waiting] of batch.entries()) waiting.resolve(results[index] as Result);
  }
}
