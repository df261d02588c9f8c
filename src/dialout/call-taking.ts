// What this process dials: a taker for each source, the places that their calls have here, the slots that they hold on trunks, and
// a look each second at what waits anywhere.

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
  /** How many more calls this process can have. */
  readonly room: () => number;
  /** False: no INVITE may leave any more, e.g. because the lease runs out; what is taken now would fail instead of being dialled by others. */
  readonly mayTake: () => boolean;
  /** Starts the call's machine. Without a turn its INVITE may leave at once. */
  readonly start: (call: AcceptedCall, queued: QueuedEvent, turn: Turn | undefined) => void;
  /** Calls with a machine, and those whose last events are on their way. */
  readonly isHere: (callId: CallId) => boolean;
  readonly here: () => readonly CallId[];
  /** SQL says that they are this process's, and it has no machine for them. */
  readonly endUnknown: (callIds: readonly CallId[]) => Promise<void>;
  readonly ends: Pick<EndRecorder, 'recordQueued'>;
  /** Wakes a process that has room. */
  readonly hint: (source: CallSource) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

type Held = {
  readonly callId: CallId;
  readonly source: CallSource;
  /** Without limits there is nothing to be given back. */
  readonly hasSlot: boolean;
  isPlaced: boolean;
};

/** What cannot be ended, because a part is unreachable, is not tried every second. */
const endUnknownPauseMs = 10_000;

export class CallTaking {
  readonly #ports: CallTakingPorts;
  readonly #takers = new Map<CallSource, SourceTaker>();
  readonly #held = new Map<string, Held>();
  /** Off the wire, and their slots not given back yet: where that fails, the sweep does it. */
  readonly #unreleased = new Set<CallId>();
  /** One statement at a time, for as many as there are. */
  readonly #releasing: Batcher<CallId, void>;
  /** Places of calls that are not started yet. */
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
  /** Taken here since the last look. */
  readonly #taken = new Map<CallSource, number>();
  /** What the last sweep found without a machine here; ended if the next one finds it again. */
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

  /** A call was accepted here: taken at once where there is room, else left to a process that has some. */
  accepted({ request: { trunk } }: AcceptedCall): void {
    this.#waiting.set(trunk, (this.#waiting.get(trunk) ?? 0) + 1);
    if (!this.wake(trunk, 1)) this.#ports.hint(trunk);
  }

  /** False: there is no room here. `count`: how many calls are known to wait; left out: any number may. */
  wake(source: CallSource, count?: number): boolean {
    if (!this.#mayTakeMore()) return false;
    this.#takerOf(source).wake(count);
    return true;
  }

  /** By the last look, and what was accepted here since. */
  waiting(): ReadonlyMap<CallSource, number> {
    return this.#waiting;
  }

  /**
   * Once a second, for all sources: what waits, whatever became of its hint, and what waited too long. False: nothing is left
   * for the next one before another call is accepted.
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

  /** The call's leg is the SIP port's now: it says when the slot is free. */
  onPlaced(legId: string): void {
    const held = this.#held.get(legId);
    if (held !== undefined) held.isPlaced = true;
  }

  /** Nothing of the leg is on the wire any more. Its id is the call's, or it is nothing of ours: a second leg. */
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

  /** Its machine is gone. Where it placed nothing, nothing else would release its slot. */
  onEnded(callId: CallId): void {
    if (this.#held.get(callId)?.isPlaced === false) this.onReleased(callId);
    // A place is free, for whichever source waits. Of calls that were taken already nothing is asked; where that is wrong, since others
    // took or accepted some, the next look (a second at most) knows better.
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

  /** What was accepted elsewhere since the last look is not known to wait. */
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
    // One for each trunk of the file, and one for direct calls: bounded by it.
    this.#takers.set(source, taker);
    return taker;
  }
}
