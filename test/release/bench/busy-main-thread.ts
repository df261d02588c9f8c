// Keeps the main thread busy as calls do, by writing and reading JSON.

const periodMs = 50;

export class BusyMainThread implements Disposable {
  readonly #share: number;
  #timer: NodeJS.Timeout | undefined;

  /** @param share of the time in which the thread works, from 0 to 1 */
  constructor(share: number) {
    this.#share = share;
    if (share > 0) this.#run();
  }

  #run(): void {
    const untilMs = performance.now() + this.#share * periodMs;
    while (performance.now() < untilMs) work();
    // Even a thread that works all the time has to read its messages.
    this.#timer = setTimeout(() => this.#run(), Math.max(1, (1 - this.#share) * periodMs));
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

function work(): unknown {
  return JSON.parse(JSON.stringify({ steps: Array.from({ length: 20 }, String) }));
}
