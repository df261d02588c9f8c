// RTP ports of one worker: the even ones of its share of the range, each with the odd one above it for RTCP
// (RFC 3550 11). First in, first out: the port that rested longest is given next, and none before it is drained.

export type PortPoolOptions = {
  readonly portMin: number;
  readonly portMax: number;
  /** This worker takes every `workerCount`-th pair, so that workers need not ask each other. */
  readonly workerIndex: number;
  readonly workerCount: number;
  /** Packets of a port's former call may still arrive this long. */
  readonly drainMs: number;
  /** Where a worker that follows a dead one goes on: the ports before were in use a moment ago. */
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

  /** Given out or not, drained or not. */
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
