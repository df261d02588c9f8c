// Stops a thread for some milliseconds. Input that arrives meanwhile (packets on a thousand
// sockets) is then read in one go, and does not wake the thread once per packet. Another thread
// that has posted a message can end the rest at once.

/** Memory shared by both threads. It counts how often the resting thread was woken. */
export type RestMemory = Int32Array<SharedArrayBuffer>;

export function createRestMemory(): RestMemory {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/**
 * Ends the rest of the other thread. Call it after posting the message, so that the message is
 * there when the thread looks.
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
   * Stops the thread for `forMs`, or until it is woken. Returns at once if it was woken since the
   * previous call. Call it at most once per turn of the event loop: the loop reads messages in
   * between.
   */
  rest(forMs: number): void {
    if (forMs > 0) Atomics.wait(this.#memory, 0, this.#woken, forMs);
    this.#woken = Atomics.load(this.#memory, 0);
  }
}
