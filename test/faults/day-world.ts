// Gateways on one database, and the calls that go through them while the clock moves by days. Keeps
// what is known about each call, so that the run can check it later.

import type { Cluster } from '../support/cluster.ts';
import { createDialer, type Dialer } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { isTerminal } from '../support/receiver.ts';

export type PlacedCall = {
  readonly callId: string;
  readonly number: string;
  /** By the shifted clock, as all instants here. */
  readonly placedAt: number;
  /** When its last notification arrived. */
  endedAt?: number;
  /** Whether the API no longer finds it. */
  isForgotten?: boolean;
};

type Behaviour = Parameters<typeof numberFor>[0];

/** Longer than a short call, its notifications and a busy machine need. */
const quietWithinMs = 60_000;

export class DayWorld {
  readonly kind: 'postgres' | 'pglite';
  readonly cluster: Cluster;
  readonly nodes: readonly GatewayProcess[];
  readonly calls: PlacedCall[] = [];
  /** What the run found wrong. */
  readonly problems: string[] = [];
  #dialers: readonly Dialer[] = [];
  #count = 0;

  constructor(
    kind: DayWorld['kind'],
    cluster: Cluster,
    nodes: readonly [GatewayProcess, ...GatewayProcess[]],
  ) {
    this.kind = kind;
    this.cluster = cluster;
    this.nodes = nodes;
  }

  /** Signs new tokens, because the clock has moved past the end of the old ones. */
  async signIn(): Promise<void> {
    this.#dialers = await Promise.all(
      this.nodes.map(({ runtime, dialer }) => createDialer(runtime.httpUrl, dialer.app)),
    );
  }

  async place(count: number, behaviour: Behaviour, tenths = 0): Promise<readonly PlacedCall[]> {
    const placed: PlacedCall[] = [];
    for (let index = 0; index < count; index += 1) {
      this.#count += 1;
      const number = numberFor(behaviour, tenths, this.#count);
      const { callId } = await this.#dialer(this.#count).dial({
        ...{ target: `tel:+${number}`, notifyurl: this.cluster.receiver.url },
        // Every other call notifies all its events.
        ...(this.#count % 2 === 0 && { notifyEvents: ['*'] }),
      });
      placed.push({ callId, number, placedAt: Date.now() });
    }
    this.calls.push(...placed);
    return placed;
  }

  async untilAnswered(calls: readonly PlacedCall[]): Promise<void> {
    const { receiver } = this.cluster;
    const isAnswered = ({ callId }: PlacedCall): boolean =>
      receiver.of(callId).some(({ status }) => status === 'Answered');
    await eventually(
      () => calls.every(isAnswered),
      () => `${this.kind}: the answers of ${calls.length} calls are notified`,
      quietWithinMs,
    );
  }

  async untilRinging(calls: readonly PlacedCall[]): Promise<void> {
    const rung = () =>
      new Set(
        this.cluster.farEnd.calls
          .filter(({ rangAt }) => rangAt !== undefined)
          .map(({ number }) => number),
      );
    await eventually(
      () => calls.every(({ number }) => rung().has(number)),
      () => `${this.kind}: ${calls.length} phones ring`,
      quietWithinMs,
    );
  }

  async untilEnded(calls: readonly PlacedCall[]): Promise<void> {
    const missing = () => {
      for (const call of calls) {
        const isEnded = this.cluster.receiver.of(call.callId).some(isTerminal);
        if (isEnded) call.endedAt ??= Date.now();
      }
      return calls.filter(({ endedAt }) => endedAt === undefined);
    };
    await eventually(
      () => missing().length === 0,
      () => `${this.kind}: the ends of ${missing().length} calls are notified`,
      quietWithinMs,
    );
  }

  /** Ends the calls, each on a node that may not be the one that dialled it. */
  async end(calls: readonly PlacedCall[]): Promise<void> {
    for (const [index, { callId }] of calls.entries()) {
      const { status } = await this.#dialer(index).end(callId);
      if (status !== 200) throw new Error(`${this.kind}: ending ${callId}: ${status}`);
    }
    await this.untilEnded(calls);
  }

  /** Returns the status of the response to a request for the call. */
  async statusOf({ callId }: PlacedCall): Promise<number> {
    return (await this.#dialer(0).call(callId)).status;
  }

  #dialer(index: number): Dialer {
    const dialer = this.#dialers[index % this.#dialers.length];
    if (dialer === undefined) throw new Error('nobody has signed in');
    return dialer;
  }
}
