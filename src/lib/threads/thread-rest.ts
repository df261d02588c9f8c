// Stops a thread for some milliseconds. It then reads all input that arrived meanwhile (packets on
// a thousand sockets) in one go, instead of waking up once per packet. Another thread that has
// posted a message can end the rest early.

/** Memory shared by both threads. It counts how often the resting thread was woken. */
export type RestMemory = Int32Array<SharedArrayBuffer>;

export function createRestMemory(): RestMemory {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/**
 * Ends the rest of the other thread. Call it after posting a message, so that the thread finds the
 * message when it wakes up.
 */
export function wake(memory: RestMemory): void {
  Atomics.add(memory, 0, 1);
  Atomics.notify(memory, 0);
}

/** Used by the thread that rests. */
export class ThreadRest {
  readonly #memory: RestMemory;
  #woken = 0;

  constructor(memory: RestMemory) {
    this.#memory = memory;
  }

  /**
   * Stops the thread for `forMs`, or until it is woken. Returns immediately if it was woken since
   * the previous call. Call it at most once per turn of the event loop, because the loop must read
   * messages in between.
   */
  rest(forMs: number): void {
    if (forMs > 0) Atomics.wait(this.#memory, 0, this.#woken, forMs);
    this.#woken = Atomics.load(this.#memory, 0);
  }
}
