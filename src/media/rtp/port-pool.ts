// One worker's share of the RTP ports. RTP uses the even ports, each with the odd port above it for
// RTCP (RFC 3550, section 11). The pool is a first-in, first-out queue, so the next port is always
// the one that has been unused for the longest time.

export type PortPoolOptions = {
  readonly portMin: number;
  readonly portMax: number;
  /** Each worker uses every `workerCount`-th pair, which is why workers needn't coordinate. */
  readonly workerIndex: number;
  readonly workerCount: number;
  /** How long a released port stays unused. Late packets for its call may still arrive. */
  readonly drainMs: number;
  /**
   * The last port that a dead predecessor used. The pool starts after it, because the ports before
   * it were in use a moment ago.
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

  /** Number of ports that no call uses, including ports that are still draining. */
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
