// Claims queued calls ("takes" them) from one source while this process has room. A source is
// either a trunk, or all calls that we dial without a trunk. The taker starts each call just before
// its INVITE may be sent. Every node runs one taker per source, and the database distributes the
// calls among them.
//
// States:
// - idle: no take is under way. `wake` ends this state when a call may be waiting or this process
//   may have room again.
// - asking: a take is under way, either in a statement of its own or along with the statement that
//   accepts calls (`takeAlong`). When the database responds, the taker starts the calls, and asks
//   again if there may be more.
// - answer lost: the database may have assigned calls to this process, which no other process will
//   dial. The taker repeats the same take until it gets a response, even if this process has no
//   room or is draining. When the process stops, the taker keeps trying for at most
//   `lastAnswerTimeoutMs`.
// - stopped: the taker doesn't claim any more calls.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallId } from '../calls/contract/identity.ts';
import type {
  CallSource,
  CallTakes,
  Grant,
  TakeAlong,
  Taken,
  TakeRequest,
  Turn,
} from '../calls/dialout-ports.ts';
import type { RuleRefusal } from '../calls/rules/refusal.ts';
import { createTurn, type StartInstant, type TurnPorts, timed } from './turn.ts';

export type TakerPorts = TurnPorts & {
  readonly takes: Pick<CallTakes, 'take'>;
  readonly places: {
    /** Returns how many more calls this process has room for. */
    free(): number;
    hold(count: number): void;
    giveBack(count: number): void;
  };
  /**
   * Returns false if a call that we claimed now would fail, because we'd no longer be allowed to
   * send its INVITE by the time the call is ready.
   */
  readonly mayTake: () => boolean;
  /**
   * Starts the state machine for a call that was assigned to this process. The INVITE waits for the
   * turn. Without a turn, it may be sent immediately.
   */
  readonly start: (grant: Grant, turn: Turn | undefined) => void;
  /** Ends a call that the calling rules refuse. */
  readonly refuse: (grant: Grant, refusal: RuleRefusal) => void;
};

/**
 * The database assigns starts up to this far in the future. This is long enough to make a
 * transaction worthwhile, but short enough that nodes take turns, and that we lose few calls if a
 * node dies.
 */
const horizonMs = 200;
/**
 * We start a call's state machine this long before its INVITE may be sent. On a busy host,
 * preparing the INVITE takes most of this time.
 */
const preparationMs = 100;
const maxBatch = 50;
const failurePauseMs = 1_000;
/**
 * If the database hasn't responded after this time, we treat it as unreachable. If it did commit
 * the take, the process that takes over from this one ends these calls.
 */
const lastAnswerTimeoutMs = 10_000;

type BegunTake = {
  readonly request: TakeRequest;
  /** Resolves with the database's answer. Called at once. */
  readonly ask: () => Promise<Taken>;
};

export class SourceTaker {
  readonly #source: CallSource;
  readonly #ports: TakerPorts;
  readonly #stopping = new AbortController();
  /** Calls that we've claimed but not started yet. */
  readonly #starting = new Map<CallId, Promise<void>>();
  #takeId = 0;
  #isAnswerLost = false;
  #running: Promise<void> | undefined;
  /** The number of calls to ask for, or 0 if there is nothing to ask for. */
  #wanted = 0;

  constructor(source: CallSource, ports: TakerPorts) {
    this.#source = source;
    this.#ports = ports;
  }

  /**
   * True if a take is under way or the response to it was lost. In that case, the database may have
   * assigned calls to this process that we don't know about yet.
   */
  get isUnanswered(): boolean {
    return this.#running !== undefined || this.#isAnswerLost;
  }

  isStarting(callId: CallId): boolean {
    return this.#starting.has(callId);
  }

  /**
   * Asks for calls. Call this when calls may be waiting or this process may have room again.
   * @param count number of calls known to be waiting. If several nodes accept calls at the same
   * time, the count makes each node claim about as many calls as it accepted. Default: unknown
   */
  wake(count = maxBatch): void {
    this.#wanted = Math.min(maxBatch, this.#wanted + count);
    if (this.#stopping.signal.aborted) return;
    if (this.#running === undefined) this.#begin(() => this.#run());
  }

  #begin(run: () => Promise<void>): void {
    this.#running = run().finally(() => {
      this.#running = undefined;
      if (this.#wanted > 0) this.wake(0);
    });
  }

  /**
   * Begins a take of at most `count` calls that is part of another statement.
   *
   * @returns undefined if this process can't take a call now, or another take comes first
   */
  takeAlong(count: number): TakeAlong | undefined {
    const isBusy = this.#running !== undefined || this.#wanted > 0 || this.#isAnswerLost;
    if (isBusy || this.#stopping.signal.aborted || !this.#ports.mayTake()) return undefined;
    const wanted = Math.min(count, maxBatch, this.#ports.places.free());
    if (wanted < 1) return undefined;
    let taken: TakeAlong['taken'] = () => undefined;
    let lost: TakeAlong['lost'] = () => undefined;
    const answer = new Promise<Taken>((resolve, reject) => {
      taken = resolve;
      lost = reject;
    });
    const request = this.#nextRequest(wanted);
    this.#begin(() => this.#run({ request, ask: () => answer }));
    return { request, taken, undone: () => taken({ grants: [], tookMs: 0 }), lost };
  }

  /** Stops claiming calls. Resolves when all claimed calls have started. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.all(this.#starting.values());
  }

  /** @param first a take that has already begun */
  async #run(first?: BegunTake): Promise<void> {
    if (first !== undefined) await this.#rest(await this.#hold(first));
    while (this.#wanted > 0 && !this.#stopping.signal.aborted) {
      const wanted = this.#wanted;
      this.#wanted = 0;
      await this.#rest(await this.#takeIfRoom(wanted));
    }
    await this.#repeatLostTake();
  }

  /** Pauses before the next take. */
  async #rest(retryInMs: number | undefined): Promise<void> {
    if (retryInMs === undefined) return;
    this.#wanted = maxBatch;
    const { signal } = this.#stopping;
    // If `stop` aborts the pause, the caller's loop ends.
    await pause(Math.ceil(retryInMs), undefined, { signal }).catch(() => undefined);
  }

  /**
   * Claims calls once.
   * @returns milliseconds until the next attempt, or undefined if the taker should wait for `wake`
   */
  async #takeIfRoom(known: number): Promise<number | undefined> {
    const { places, mayTake } = this.#ports;
    if (!mayTake()) return this.#isAnswerLost ? failurePauseMs : undefined;
    const wanted = Math.max(0, Math.min(known, places.free()));
    // There's no room. The end of any call in this process will wake the taker.
    if (wanted < 1 && !this.#isAnswerLost) return undefined;
    return await this.#hold(this.#beginTake(wanted));
  }

  /** Completes a take, and holds places for its calls. Returns what `#takeIfRoom` does. */
  async #hold(take: BegunTake): Promise<number | undefined> {
    const { places } = this.#ports;
    const { wanted } = take.request;
    places.hold(wanted);
    try {
      return await this.#complete(take);
    } catch (error) {
      this.#isAnswerLost = true;
      this.#ports.logger.warn({ err: error, trunk: this.#source }, 'calls could not be taken');
      return failurePauseMs;
    } finally {
      places.giveBack(wanted);
    }
  }

  #beginTake(wanted: number): BegunTake {
    const request = this.#nextRequest(wanted);
    return { request, ask: () => this.#ports.takes.take(request) };
  }

  /** Repeats the last take if its answer was lost. */
  #nextRequest(wanted: number): TakeRequest {
    const isRepeated = this.#isAnswerLost;
    if (!isRepeated) this.#takeId += 1;
    const limits = this.#ports.limits();
    return { takeId: this.#takeId, isRepeated, source: this.#source, wanted, horizonMs, limits };
  }

  async #complete({ request, ask }: BegunTake): Promise<number | undefined> {
    const { wanted, isRepeated } = request;
    const { answer, startOf } = await timed(this.#ports.nowMs, ask);
    this.#isAnswerLost = false;
    for (const grant of answer.grants) {
      if (grant.refusal !== undefined) this.#ports.refuse(grant, grant.refusal);
      else this.#startLater(grant, startOf(grant.startInMs));
    }
    // If so, we've claimed all calls that we know of. Other processes will ask for those that they
    // accepted.
    const hasAllKnown = answer.grants.length >= wanted && wanted < maxBatch && !isRepeated;
    return hasAllKnown ? undefined : answer.retryInMs;
  }

  async #repeatLostTake(): Promise<void> {
    const { nowMs, logger } = this.#ports;
    const deadlineMs = nowMs() + lastAnswerTimeoutMs;
    while (this.#stopping.signal.aborted && this.#isAnswerLost && nowMs() < deadlineMs) {
      try {
        // Only ask for the result of the lost take, not for more calls.
        await this.#complete(this.#beginTake(0));
      } catch (error) {
        logger.warn({ err: error, trunk: this.#source }, 'the last take was not answered');
        await pause(failurePauseMs);
      }
    }
  }

  #startLater(grant: Grant, start: StartInstant): void {
    const { callId } = grant.call;
    this.#ports.places.hold(1);
    const starting = this.#startBefore(grant, start).finally(() => {
      this.#starting.delete(callId);
      this.#ports.places.giveBack(1);
    });
    this.#starting.set(callId, starting);
  }

  async #startBefore(grant: Grant, start: StartInstant): Promise<void> {
    const source = this.#source;
    const isPaced = source !== undefined && this.#ports.limits()?.callsPerSecond !== undefined;
    if (!isPaced) return this.#ports.start(grant, undefined);
    const leftMs = start.latestMs - preparationMs - this.#ports.nowMs();
    if (leftMs > 0) await pause(leftMs);
    this.#ports.start(grant, createTurn(this.#ports, source, grant.call.callId, start));
  }
}
