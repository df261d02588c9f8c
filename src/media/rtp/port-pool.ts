// One worker's share of the RTP ports. RTP uses the even ports, and RTCP the odd ports above them
// (RFC 3550, section 11). The pool is a first-in, first-out queue, so it always returns the port
// that has been unused for the longest time.

export type PortPoolOptions = {
  readonly portMin: number;
  readonly portMax: number;
  /** Each worker uses every `workerCount`-th pair, so the workers don't need to coordinate. */
  readonly workerIndex: number;
  readonly workerCount: number;
  /**
   * A released port stays unused for this long, because late packets for its call may still arrive.
   */
  readonly drainMs: number;
  /**
   * The last port that was used by this worker's predecessor, which died. The pool starts after
   * that port, because the ports before it were in use a moment ago.
   */
  readonly startAfterPort?: number;
};

type Resting = { readonly port: number; readonly freeAtMs: number };

export class PortPool {
  readonly #resting: Resting[] = [];
  readonly #drainMs: number;

  constructor(options: PortPoolOptions) {
    this.#drainMs = options.drainMs;
    const ports: number[] = [];
    const firstEven = options.portMin + (options.portMin % 2);
    const stride = 2 * options.workerCount;
    for (
      let port = firstEven + 2 * options.workerIndex;
      port + 1 <= options.portMax;
      port += stride
    ) {
      ports.push(port);
    }
    const after = options.startAfterPort ?? -1;
    const rotated = [
      ...ports.filter((port) => port > after),
      ...ports.filter((port) => port <= after),
    ];
    for (const port of rotated) this.#resting.push({ port, freeAtMs: Number.NEGATIVE_INFINITY });
  }

  /** Number of ports that aren't in use by a call, including ports that are still draining. */
  get resting(): number {
    return this.#resting.length;
  }

  take(nowMs: number): number | undefined {
    const first = this.#resting[0];
    if (first === undefined || first.freeAtMs > nowMs) return undefined;
    this.#resting.shift();
    return first.port;
  }

  release(port: number, nowMs: number): void {
    this.#resting.push({ port, freeAtMs: nowMs + this.#drainMs });
  }
}
