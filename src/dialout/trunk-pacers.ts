// The trunks with limits that this process dials through, and their slots that its calls hold.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { TrunkLimits, TrunkQueue } from '../calls/dialout-ports.ts';
import { Batcher } from '../lib/batcher.ts';
import type { Logger } from '../lib/logger.ts';
import { TrunkPacer, type Turn } from './trunk-pacer.ts';

export type TrunkPacersPorts = {
  readonly queue: TrunkQueue;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  readonly room: () => number;
  /** The call is this process's: starts its machine. */
  readonly start: (call: AcceptedCall) => void;
  /** True: the call has waited too long, and has its end. */
  readonly endIfExpired: (call: AcceptedCall) => Promise<boolean>;
  readonly logger: Logger;
};

type Held = {
  readonly trunk: string;
  readonly turn: Turn;
  isPlaced: boolean;
};

export class TrunkPacers {
  readonly #ports: TrunkPacersPorts;
  readonly #pacers = new Map<string, TrunkPacer>();
  readonly #held = new Map<CallId, Held>();
  /** Off the wire, and their slots not given back yet: where that fails, `look` does it. */
  readonly #unreleased = new Set<CallId>();
  /** One statement at a time, for as many as there are. */
  readonly #releasing: Batcher<CallId, void>;
  #isStopped = false;

  constructor(ports: TrunkPacersPorts) {
    this.#ports = ports;
    this.#releasing = new Batcher<CallId, void>(
      async (callIds) => {
        await this.#release(callIds);
        return callIds.map(() => undefined);
      },
      { maxBatch: 500, maxWaiting: 20_000, concurrency: 1 },
    );
  }

  isPaced(trunk: string | undefined): trunk is string {
    return trunk !== undefined && this.#ports.limitsOf(trunk) !== undefined;
  }

  wake(trunk: string): void {
    if (!this.#isStopped) this.#pacerOf(trunk).wake();
  }

  /** This process can take a call more. */
  wakeAll(): void {
    if (!this.#isStopped) for (const pacer of this.#pacers.values()) pacer.wake();
  }

  /**
   * Now and then: for calls whose message was lost, for room that another node made, for slots that were left behind.
   * The trunks with limits that calls wait for.
   */
  async look(): Promise<readonly string[]> {
    const { queue } = this.#ports;
    if (this.#unreleased.size > 0) await this.#release([...this.#unreleased]);
    await queue.releaseLost([...this.#held.keys()]);
    const waiting = await queue.waitingByTrunk();
    const paced = [...waiting.keys()].filter((trunk) => this.isPaced(trunk)) as string[];
    for (const trunk of paced) this.wake(trunk);
    return paced;
  }

  /** When the call's INVITE may leave; undefined: no trunk with limits holds it. */
  turnOf(callId: CallId): Turn | undefined {
    return this.#held.get(callId)?.turn;
  }

  /** The call is this process's already, or was. */
  has(callId: CallId): boolean {
    return (
      this.#held.has(callId) ||
      this.#unreleased.has(callId) ||
      [...this.#pacers.values()].some((pacer) => pacer.isStarting(callId))
    );
  }

  /** The call's leg is the SIP port's now: it says when the slot is free. */
  onPlaced(callId: CallId): void {
    const held = this.#held.get(callId);
    if (held !== undefined) held.isPlaced = true;
  }

  /** Nothing of the call is on the wire any more. */
  onReleased(callId: CallId): void {
    const held = this.#held.get(callId);
    if (held === undefined) return;
    this.#held.delete(callId);
    this.#unreleased.add(callId);
    this.#releasing.add(callId).then(
      () => this.wake(held.trunk),
      (error: unknown) =>
        this.#ports.logger.warn({ err: error, callId }, 'a slot of a trunk was not released'),
    );
  }

  /** Its machine is gone. Where it placed nothing, nothing else would release its slot. */
  onEnded(callId: CallId): void {
    if (this.#held.get(callId)?.isPlaced === false) this.onReleased(callId);
    this.wakeAll();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#pacers.values()].map((pacer) => pacer.stop()));
  }

  async #release(callIds: readonly CallId[]): Promise<void> {
    await this.#ports.queue.release(callIds);
    for (const callId of callIds) this.#unreleased.delete(callId);
  }

  #pacerOf(trunk: string): TrunkPacer {
    const known = this.#pacers.get(trunk);
    if (known !== undefined) return known;
    const { queue, limitsOf, room, start, endIfExpired, logger } = this.#ports;
    const pacer = new TrunkPacer(trunk, {
      queue,
      limits: () => limitsOf(trunk),
      known: () => [...this.#held.keys(), ...this.#unreleased],
      room,
      start: (call, turn) => {
        this.#held.set(call.callId, { trunk, turn, isPlaced: false });
        start(call);
      },
      endIfExpired: async (call) => {
        const hasExpired = await endIfExpired(call);
        if (hasExpired) await this.#release([call.callId]);
        return hasExpired;
      },
      nowMs: () => performance.now(),
      logger,
    });
    // One for each trunk of the file: bounded by it.
    this.#pacers.set(trunk, pacer);
    return pacer;
  }
}
