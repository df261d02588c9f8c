// Puts a thread to sleep for a few milliseconds. Afterwards the thread reads everything that has
// arrived in the meantime, e.g. packets on a thousand sockets, in one go instead of waking up once
// per packet. When another thread posts a message, it can end the rest early.

/** Shared by both threads. Counts how often the resting thread has been woken. */
export type RestMemory = Int32Array<SharedArrayBuffer>;

export function createRestMemory(): RestMemory {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/**
 * Ends the other thread's rest. Call this after posting a message, so that the other thread finds
 * the message when it wakes up.
 */
export function wake(memory: RestMemory): void {
  Atomics.add(memory, 0, 1);
  Atomics.notify(memory, 0);
}

/** The resting thread's side. */
export class ThreadRest {
  readonly #memory: RestMemory;
  #woken = 0;

  constructor(memory: RestMemory) {
    this.#memory = memory;
  }

  /**
   * Blocks the thread for `forMs`, or until another thread calls `wake`. If another thread has
   * already done so since the previous rest, returns immediately. Call this at most once per turn
   * of the event loop, because the loop has to read messages in between.
   */
  rest(forMs: number): void {
    if (forMs > 0) Atomics.wait(this.#memory, 0, this.#woken, forMs);
    this.#woken = Atomics.load(this.#memory, 0);
  }
}
