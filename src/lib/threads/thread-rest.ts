// Lets a thread stand still for some milliseconds, so that what comes in meanwhile (packets on a thousand sockets) is read in one go
// and does not wake it one by one. Another thread that has posted a message ends its rest at once.

/** Memory that both threads share: how often it was woken. */
export type RestMemory = Int32Array<SharedArrayBuffer>;

export function createRestMemory(): RestMemory {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** After the message was posted, so that it is there when the thread looks. */
export function wake(memory: RestMemory): void {
  Atomics.add(memory, 0, 1);
  Atomics.notify(memory, 0);
}

/** Of the thread that rests. */
export class ThreadRest {
  readonly #memory: RestMemory;
  #woken = 0;

  constructor(memory: RestMemory) {
    this.#memory = memory;
  }

  /**
   * Stands still for so long, or until it is woken: not at all if that happened since the last time. Once in a turn of the event
   * loop, which reads the messages in between.
   */
  rest(forMs: number): void {
    if (forMs > 0) Atomics.wait(this.#memory, 0, this.#woken, forMs);
    this.#woken = Atomics.load(this.#memory, 0);
  }
}
