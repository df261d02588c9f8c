// Decides which calls this process dials. Runs one taker per source, tracks the places of calls in
// this process and their slots on trunks, and sweeps all sources for waiting calls once a second.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type {
  CallSource,
  CallTakes,
  Grant,
  QueuedEvent,
  TrunkLimits,
  Turn,
} from '../calls/dialout-ports.ts';
import { progressOfAccepted } from '../calls/life/call-events.ts';
import { endOfExpiry } from '../calls/life/call-outcome.ts';
import type { Clock } from '../calls/ports.ts';
import { Batcher } from '../lib/batcher.ts';
import type { Logger } from '../lib/logger.ts';
import type { EndRecorder } from './end-recorder.ts';
import { SourceTaker } from './source-taker.ts';

export type CallTakingPorts = {
  readonly takes: CallTakes;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  /** Returns how many more calls this process can have. */
  readonly room: () => number;
  /**
   * Returns false if no INVITE may leave any more, e.g. because the lease is about to expire. A
   * call taken then would fail instead of being dialled by another process.
   */
  readonly mayTake: () => boolean;
  /** Starts the call's machine. Without a turn, its INVITE may leave immediately. */
  readonly start: (call: AcceptedCall, queued: QueuedEvent, turn: Turn | undefined) => void;
  /**
   * Returns true if the call has a machine in this process, or if its last events are still being
   * stored or published here.
   */
  readonly isHere: (callId: CallId) => boolean;
  /** Returns the calls that have a machine in this process. */
  readonly here: () => readonly CallId[];
  /** Ends calls that SQL assigns to this process although it has no machine for them. */
  readonly endUnknown: (callIds: readonly CallId[]) => Promise<void>;
  readonly ends: Pick<EndRecorder, 'recordQueued'>;
  /** Wakes another process that has room. */
  readonly hint: (source: CallSource) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

type Held = {
  readonly callId: CallId;
  readonly source: CallSource;
  /** False if the source has no limits, so that there is no slot to release. */
  readonly hasSlot: boolean;
  isPlaced: boolean;
};

/**
 * Pause between two attempts to end unknown calls. If SQL or NATS is unreachable, retrying every
 * second is pointless.
 */
const endUnknownPauseMs = 10_000;

export class CallTaking {
  readonly #ports: CallTakingPorts;
  readonly #takers = new Map<CallSource, SourceTaker>();
  readonly #held = new Map<string, Held>();
  /**
   * Calls whose legs are off the wire but whose slots are not released yet. If a release fails, the
   * next sweep retries it.
   */
  readonly #unreleased = new Set<CallId>();
  /** Runs one release statement at a time, for all slots that are waiting. */
  readonly #releasing: Batcher<CallId, void>;
  /** Places in this process that are reserved for calls that have not started yet. */
  readonly #places = {
    free: () => this.#ports.room() - this.#reserved,
    hold: (count: number) => {
      this.#reserved += count;
    },
    giveBack: (count: number) => {
      this.#reserved -= count;
    },
  };
  #reserved = 0;
  #waiting = new Map<CallSource, number>();
  /** Number of calls per source that this process took since the last sweep. */
  readonly #taken = new Map<CallSource, number>();
  /**
   * Calls without a machine that the last sweep found. If the next sweep finds them again, they are
   * ended.
   */
  #suspects: ReadonlySet<CallId> = new Set();
  #endUnknownAfterMs = 0;
  #isStopped = false;

  constructor(ports: CallTakingPorts) {
    this.#ports = ports;
    this.#releasing = new Batcher<CallId, void>(
      async (callIds) => {
        await this.#release(callIds);
        return callIds.map(() => undefined);
      },
      { maxBatch: 500, maxWaiting: 20_000, concurrency: 1 },
    );
  }

  /**
   * Counts a newly accepted call as waiting. Wakes the taker of its source if this process has
   * room. Otherwise sends a hint to the other processes.
   */
  accepted({ request: { trunk } }: AcceptedCall): void {
    this.#waiting.set(trunk, (this.#waiting.get(trunk) ?? 0) + 1);
    if (!this.wake(trunk, 1)) this.#ports.hint(trunk);
  }

  /**
   * Wakes the taker of a source.
   * @param count number of calls known to be waiting. Default: unknown
   * @returns false if this process has no room or may not take calls
   */
  wake(source: CallSource, count?: number): boolean {
    if (!this.#mayTakeMore()) return false;
    this.#takerOf(source).wake(count);
    return true;
  }

  /**
   * Number of waiting calls per source: the result of the last sweep plus the calls accepted here
   * since.
   */
  waiting(): ReadonlyMap<CallSource, number> {
    return this.#waiting;
  }

  /**
   * Sweeps all sources; called once a second. Takes waiting calls whose hint may have been lost,
   * ends calls that waited too long, and ends calls of this process that have no machine.
   * @returns false if sweeps have nothing to do until another call is accepted
   */
  async sweep(): Promise<boolean> {
    const { takes, mayTake, here } = this.#ports;
    if (this.#isStopped || !mayTake()) return true;
    if (this.#unreleased.size > 0) await this.#release([...this.#unreleased]);
    const held = [...this.#held.values()].map(({ callId }) => callId);
    const known = [...new Set([...here(), ...held])];
    const found = await takes.sweep(known);
    this.#waiting = new Map(found.waiting);
    this.#taken.clear();
    for (const source of found.waiting.keys()) this.wake(source);
    await Promise.all(found.expired.map((call) => this.#expire(call)));
    await this.#endUnknown(found.notHere);
    return (
      known.length + found.waiting.size + found.expired.length + found.notHere.length > 0 ||
      this.#unreleased.size > 0 ||
      [...this.#takers.values()].some((taker) => taker.isUnanswered)
    );
  }

  /**
   * Records that the call's leg was placed. From then on the SIP port reports when the slot is
   * free.
   */
  onPlaced(legId: string): void {
    const held = this.#held.get(legId);
    if (held !== undefined) held.isPlaced = true;
  }

  /**
   * Releases the slot of a leg that is off the wire. The id of a first leg is its call's id. Other
   * ids belong to second legs, which this class does not track.
   */
  onReleased(legId: string): void {
    const held = this.#held.get(legId);
    if (held === undefined) return;
    const { callId } = held;
    this.#held.delete(callId);
    if (!held.hasSlot) return;
    this.#unreleased.add(callId);
    this.#releasing.add(callId).then(
      () => this.wake(held.source),
      (error: unknown) =>
        this.#ports.logger.warn({ err: error, callId }, 'a slot of a trunk was not released'),
    );
  }

  /**
   * Handles the end of a call's machine. If the call placed no leg, no other event would release
   * its slot.
   */
  onEnded(callId: CallId): void {
    if (this.#held.get(callId)?.isPlaced === false) this.onReleased(callId);
    // The free place can serve any source with waiting calls. Skip sources whose known waiting
    // calls were all taken here. If other processes took or accepted calls, the count is wrong
    // until the next sweep corrects it, within a second.
    for (const [source, count] of this.#waiting) {
      if (count > (this.#taken.get(source) ?? 0)) this.wake(source);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#takers.values()].map((taker) => taker.stop()));
  }

  #mayTakeMore(): boolean {
    return !this.#isStopped && this.#ports.mayTake() && this.#places.free() > 0;
  }

  async #expire(call: AcceptedCall): Promise<void> {
    const { ends, clock } = this.#ports;
    const end = endOfExpiry(clock.now());
    await ends.recordQueued(progressOfAccepted(call), end);
  }

  async #endUnknown(notHere: readonly CallId[]): Promise<void> {
    const isTaking = (callId: CallId): boolean =>
      [...this.#takers.values()].some((taker) => taker.isUnanswered || taker.isStarting(callId));
    const unknown = notHere.filter(
      (callId) => !this.#held.has(callId) && !this.#ports.isHere(callId) && !isTaking(callId),
    );
    const twice = unknown.filter((callId) => this.#suspects.has(callId));
    this.#suspects = new Set(unknown);
    if (twice.length === 0 || performance.now() < this.#endUnknownAfterMs) return;
    this.#endUnknownAfterMs = performance.now() + endUnknownPauseMs;
    await this.#ports.endUnknown(twice);
  }

  async #release(callIds: readonly CallId[]): Promise<void> {
    await this.#ports.takes.release(callIds);
    for (const callId of callIds) this.#unreleased.delete(callId);
  }

  #begin(source: CallSource, { call, queued }: Grant, turn: Turn | undefined): void {
    const { callId } = call;
    const hasSlot = source !== undefined && this.#ports.limitsOf(source) !== undefined;
    this.#held.set(callId, { callId, source, hasSlot, isPlaced: false });
    this.#ports.start(call, queued, turn);
  }

  /**
   * Counts taken calls, up to the number known to be waiting. The taken calls may include calls
   * that other processes accepted since the last sweep, which are not known here.
   */
  #countTaken(source: CallSource, count: number): void {
    const taken = (this.#taken.get(source) ?? 0) + count;
    this.#taken.set(source, Math.min(taken, this.#waiting.get(source) ?? 0));
  }

  #takerOf(source: CallSource): SourceTaker {
    const known = this.#takers.get(source);
    if (known !== undefined) return known;
    const { takes, limitsOf, mayTake, logger } = this.#ports;
    const taker = new SourceTaker(source, {
      takes: {
        take: async (request) => {
          const taken = await takes.take(request);
          this.#countTaken(source, taken.grants.length);
          return taken;
        },
        nextStart: (trunk, intervalMs) => takes.nextStart(trunk, intervalMs),
      },
      limits: () => (source === undefined ? undefined : limitsOf(source)),
      places: this.#places,
      mayTake,
      start: (grant, turn) => this.#begin(source, grant, turn),
      nowMs: () => performance.now(),
      logger,
    });
    // Bounded by the trunks file: one taker per trunk, and one for direct calls.
    this.#takers.set(source, taker);
    return taker;
  }
}
