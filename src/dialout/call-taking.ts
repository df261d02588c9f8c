// Decides which calls this process dials. For each source (a trunk, or all calls without one) a
// taker claims queued calls. This module tracks how many calls this process has room for and which
// slots its calls occupy on trunks, and sweeps all sources for waiting calls once per second.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type {
  CallSource,
  CallTakes,
  ExpiredCall,
  Grant,
  QueuedEvent,
  TakeAlong,
  TrunkLimits,
  Turn,
} from '../calls/dialout-ports.ts';
import { progressOfAccepted } from '../calls/life/call-events.ts';
import { endOfExpiry, endOfRefusal } from '../calls/life/call-outcome.ts';
import type { Clock } from '../calls/ports.ts';
import type { RuleRefusal } from '../calls/rules/refusal.ts';
import { Batcher } from '../lib/batcher.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { EndRecorder } from './end-recorder.ts';
import { SourceTaker } from './source-taker.ts';

export type CallTakingPorts = {
  readonly takes: CallTakes;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  /** Returns how many more calls this process has room for. */
  readonly room: () => number;
  /**
   * Returns false if we can't send any more INVITEs, e.g. because the lease is about to expire. If
   * we claimed a call anyway, it would fail instead of being dialled by another process.
   */
  readonly mayTake: () => boolean;
  /** Starts the call's state machine. Without a turn, the INVITE may be sent immediately. */
  readonly start: (call: AcceptedCall, queued: QueuedEvent, turn: Turn | undefined) => void;
  /**
   * Ends a call that the calling rules refuse, without a state machine. Resolves when the end has
   * been stored.
   */
  readonly refuse: (call: AcceptedCall, queued: QueuedEvent, refusal: RuleRefusal) => Promise<void>;
  /**
   * Returns true if the call has a state machine in this process, or if we're still storing or
   * publishing its last events.
   */
  readonly isHere: (callId: CallId) => boolean;
  /** The calls that have a state machine in this process. */
  readonly here: () => readonly CallId[];
  /**
   * Ends calls that belong to this process according to the database but don't have a state machine
   * here.
   */
  readonly endUnknown: (callIds: readonly CallId[]) => Promise<void>;
  readonly ends: Pick<EndRecorder, 'recordQueued'>;
  /**
   * Releases calls of held campaigns that may be dialled now.
   * @returns true if any campaign is still held
   */
  readonly reviewCampaigns: () => Promise<boolean>;
  /** Wakes another process that has room. */
  readonly hint: (source: CallSource) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

type HeldCall = {
  readonly callId: CallId;
  readonly source: CallSource;
  /** False if the source has no limits, because then there is no slot to release. */
  readonly hasSlot: boolean;
  isPlaced: boolean;
};

/**
 * We pause this long between two attempts to end unknown calls. While the database or NATS is
 * unreachable, there's no point in retrying every second.
 */
const endUnknownPauseMs = 10_000;

export class CallTaking {
  readonly #ports: CallTakingPorts;
  readonly #takers = new Map<CallSource, SourceTaker>();
  readonly #held = new Map<string, HeldCall>();
  /**
   * Calls whose legs have ended but whose slots we still have to release. If a release fails, the
   * next sweep retries it.
   */
  readonly #unreleased = new Set<CallId>();
  /** Runs one release statement at a time, for all slots that are waiting to be released. */
  readonly #releasing: Batcher<CallId, void>;
  /** Tracks the places in this process that are reserved for calls that haven't started yet. */
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
  /** Counts the calls that this process has claimed from each source since the last sweep. */
  readonly #taken = new Map<CallSource, number>();
  /**
   * Calls that the last sweep found without a state machine. If the next sweep finds them again, we
   * end them.
   */
  #suspects: ReadonlySet<CallId> = new Set();
  #endUnknownAfterMs = 0;
  /** True if a campaign may be held, which is the case at the start, until the first review. */
  #isCampaignHeld = true;
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
   * Counts a newly accepted call as waiting. Unless the call has been taken already, wakes the
   * source's taker if this process has room, and otherwise sends a hint to the other processes.
   */
  accepted({ request: { trunk } }: AcceptedCall, isTaken = false): void {
    this.#waiting.set(trunk, (this.#waiting.get(trunk) ?? 0) + 1);
    if (!isTaken && !this.wake(trunk, 1)) this.#ports.hint(trunk);
  }

  /** Begins a take that is part of the statement that stores `count` calls of the source. */
  takeAlong(source: CallSource, count: number): TakeAlong | undefined {
    if (!this.#mayTakeMore()) return undefined;
    const along = this.#takerOf(source).takeAlong(count);
    if (along === undefined) return undefined;
    const taken: TakeAlong['taken'] = (answer) => {
      this.#countTaken(source, answer.grants.length);
      along.taken(answer);
    };
    return { ...along, taken };
  }

  /**
   * Wakes a source's taker.
   * @param count number of calls known to be waiting. Default: unknown
   * @returns false if this process has no room or may not claim calls
   */
  wake(source: CallSource, count?: number): boolean {
    if (!this.#mayTakeMore()) return false;
    this.#takerOf(source).wake(count);
    return true;
  }

  /**
   * Returns the number of waiting calls per source: those that the last sweep found, plus the calls
   * that this process has accepted since then.
   */
  waiting(): ReadonlyMap<CallSource, number> {
    return this.#waiting;
  }

  /**
   * Sweeps all sources. Call once per second. A sweep claims waiting calls whose hint may have been
   * lost, ends calls that have waited too long, and ends this process's calls that don't have a
   * state machine.
   * @returns false if there will be nothing to sweep until another call is accepted
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
    if (found.isHolding || this.#isCampaignHeld) {
      this.#isCampaignHeld = await this.#ports.reviewCampaigns();
    }
    return (
      known.length + found.waiting.size + found.expired.length + found.notHere.length > 0 ||
      found.isHolding ||
      this.#isCampaignHeld ||
      this.#unreleased.size > 0 ||
      [...this.#takers.values()].some((taker) => taker.isUnanswered)
    );
  }

  /**
   * Records that the call's leg was placed. From then on, the SIP port reports when the slot
   * becomes free.
   */
  onPlaced(legId: string): void {
    const held = this.#held.get(legId);
    if (held !== undefined) held.isPlaced = true;
  }

  /**
   * Releases a leg's slot after the leg has ended. The first leg's id is the call's id. All other
   * ids belong to second legs, which this class doesn't track.
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
   * Called when a call's state machine has finished. If the call never placed a leg, nothing else
   * would release its slot.
   */
  onEnded(callId: CallId): void {
    if (this.#held.get(callId)?.isPlaced === false) this.onReleased(callId);
    // There's now room for a call from any source that has waiting calls. We skip a source if we've
    // already claimed all the waiting calls that we know of. The count may be off if other
    // processes have claimed or accepted calls, but the next sweep corrects it within a second.
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

  async #expire({ call, refusal }: ExpiredCall): Promise<void> {
    const { ends, clock } = this.#ports;
    const now = clock.now();
    const end = refusal === undefined ? endOfExpiry(now) : endOfRefusal(refusal, now);
    await ends.recordQueued(progressOfAccepted(call), end);
  }

  async #endUnknown(notHere: readonly CallId[]): Promise<void> {
    const isTaking = (callId: CallId): boolean =>
      [...this.#takers.values()].some((taker) => taker.isUnanswered || taker.isStarting(callId));
    const unknown = notHere.filter(
      (callId) => !this.#held.has(callId) && !this.#ports.isHere(callId) && !isTaking(callId),
    );
    const confirmed = unknown.filter((callId) => this.#suspects.has(callId));
    this.#suspects = new Set(unknown);
    if (confirmed.length === 0 || performance.now() < this.#endUnknownAfterMs) return;
    this.#endUnknownAfterMs = performance.now() + endUnknownPauseMs;
    await this.#ports.endUnknown(confirmed);
  }

  async #release(callIds: readonly CallId[]): Promise<void> {
    await this.#ports.takes.release(callIds);
    for (const callId of callIds) this.#unreleased.delete(callId);
  }

  #startCall(source: CallSource, { call, queued }: Grant, turn: Turn | undefined): void {
    const { callId } = call;
    this.#held.set(callId, { callId, source, hasSlot: this.#hasSlots(source), isPlaced: false });
    this.#ports.start(call, queued, turn);
  }

  #refuseCall(source: CallSource, { call, queued }: Grant, refusal: RuleRefusal): void {
    const { callId } = call;
    this.#held.set(callId, { callId, source, hasSlot: this.#hasSlots(source), isPlaced: false });
    const refused = this.#ports.refuse(call, queued, refusal).finally(() => this.onEnded(callId));
    inBackground(refused, this.#ports.logger, 'ending a call that the calling rules refuse');
  }

  #hasSlots(source: CallSource): boolean {
    return source !== undefined && this.#ports.limitsOf(source) !== undefined;
  }

  /**
   * Counts claimed calls, but never more than we know to be waiting. Some of the claimed calls may
   * have been accepted by other processes since the last sweep, so we haven't counted them as
   * waiting.
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
      start: (grant, turn) => this.#startCall(source, grant, turn),
      refuse: (grant, refusal) => this.#refuseCall(source, grant, refusal),
      nowMs: () => performance.now(),
      logger,
    });
    // The map's size is bounded by the trunks file, because there is one taker per trunk and one
    // for direct calls.
    this.#takers.set(source, taker);
    return taker;
  }
}
