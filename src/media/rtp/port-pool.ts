// The RTP ports of one worker: the even ports of its share of the range, each with the odd port
// above it for RTCP (RFC 3550, section 11). First in, first out: the port that rested longest is
// used next, and no port before it is drained.

export type PortPoolOptions = {
  readonly portMin: number;
  readonly portMax: number;
  /** This worker uses every `workerCount`-th pair, so that workers need not coordinate. */
  readonly workerIndex: number;
  readonly workerCount: number;
  /** How long packets of a port's previous call may still arrive. */
  readonly drainMs: number;
  /**
   * The last port of a worker that died. Its successor starts after it, because the ports before it
   * were in use a moment ago.
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

  /** Number of ports that no call has, drained or not. */
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
