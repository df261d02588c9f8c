// Takes the calls of one source while this process has room. A source is a trunk, or all calls that
// are dialled without a trunk. The taker starts each call shortly before its INVITE may leave.
// Every node runs one taker per source, and SQL distributes the calls among them.
//
// States:
// - idle: no take is under way. Left when a call may be waiting or a place may be free (`wake`).
// - asking: a take is under way. When it is answered, its calls are started. The taker asks again
//   if more calls may be available.
// - answer lost: SQL may have assigned calls to this process, and no other process will dial them.
//   The taker repeats the same take until it is answered, even if this process has no room or is
//   draining. When the process stops, it repeats the take for at most `lastAnswerTimeoutMs`.
// - stopped: no more calls are taken.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallSource, CallTakes, Grant, Turn } from '../calls/dialout-ports.ts';
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
   * Returns false if a taken call would fail, because its INVITE could not leave any more when the
   * call is ready.
   */
  readonly mayTake: () => boolean;
  /**
   * Starts the machine of a call that was assigned to this process. The INVITE waits for the turn.
   * Without a turn, it may leave immediately.
   */
  readonly start: (grant: Grant, turn: Turn | undefined) => void;
};

/**
 * How far in the future granted starts may lie. It is long enough to make a transaction worthwhile.
 * It is short enough that few calls are lost with a node, and that nodes take turns.
 */
const horizonMs = 200;
/**
 * How long before its INVITE may leave a call's machine is started. On a busy host, preparing the
 * INVITE takes most of this time.
 */
const preparationMs = 100;
const maxBatch = 50;
const failurePauseMs = 1_000;
/**
 * After this time, an SQL server that has not answered counts as unreachable. If SQL did commit the
 * take, the process that takes over ends its calls.
 */
const lastAnswerTimeoutMs = 10_000;

export class SourceTaker {
  readonly #source: CallSource;
  readonly #ports: TakerPorts;
  readonly #stopping = new AbortController();
  /** Calls that were taken but not started yet. */
  readonly #starting = new Map<CallId, Promise<void>>();
  #takeId = 0;
  #isAnswerLost = false;
  #running: Promise<void> | undefined;
  /** Number of calls to ask for. 0: nothing to ask for. */
  #wanted = 0;

  constructor(source: CallSource, ports: TakerPorts) {
    this.#source = source;
    this.#ports = ports;
  }

  /**
   * True if a take is under way or its answer was lost. SQL may then have assigned calls to this
   * process that it does not know yet.
   */
  get isUnanswered(): boolean {
    return this.#running !== undefined || this.#isAnswerLost;
  }

  isStarting(callId: CallId): boolean {
    return this.#starting.has(callId);
  }

  /**
   * Asks for calls, because calls may be waiting or a place may be free.
   * @param count number of calls known to be waiting. With it, nodes that accept calls at the same
   * time each take about as many as they accepted. Default: unknown
   */
  wake(count = maxBatch): void {
    this.#wanted = Math.min(maxBatch, this.#wanted + count);
    if (this.#stopping.signal.aborted) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#wanted > 0) this.wake(0);
    });
  }

  /** Stops taking calls. Resolves when all taken calls have started. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.all(this.#starting.values());
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#wanted > 0 && !signal.aborted) {
      const wanted = this.#wanted;
      this.#wanted = 0;
      const retryInMs = await this.#ask(wanted);
      if (retryInMs === undefined) continue;
      this.#wanted = maxBatch;
      // If the pause is aborted, the loop condition ends the loop.
      await pause(Math.ceil(retryInMs), undefined, { signal }).catch(() => undefined);
    }
    await this.#repeatLostTake();
  }

  /**
   * Takes calls once.
   * @returns milliseconds until the next attempt, or undefined if the taker should wait to be woken
   */
  async #ask(known: number): Promise<number | undefined> {
    const { places, mayTake } = this.#ports;
    if (!mayTake()) return this.#isAnswerLost ? failurePauseMs : undefined;
    const wanted = Math.max(0, Math.min(known, places.free()));
    // There is no room. The end of a call here wakes the taker.
    if (wanted < 1 && !this.#isAnswerLost) return undefined;
    places.hold(wanted);
    try {
      return await this.#take(wanted);
    } catch (error) {
      this.#isAnswerLost = true;
      this.#ports.logger.warn({ err: error, trunk: this.#source }, 'calls could not be taken');
      return failurePauseMs;
    } finally {
      places.giveBack(wanted);
    }
  }

  async #take(wanted: number): Promise<number | undefined> {
    const { takes, limits, nowMs } = this.#ports;
    const isRepeated = this.#isAnswerLost;
    if (!isRepeated) this.#takeId += 1;
    const request = { takeId: this.#takeId, isRepeated, source: this.#source, wanted, horizonMs };
    const { answer, startOf } = await timed(nowMs, () =>
      takes.take({ ...request, limits: limits() }),
    );
    this.#isAnswerLost = false;
    for (const grant of answer.grants) this.#startLater(grant, startOf(grant.startInMs));
    // All known calls are taken. Other processes ask for the calls that they accepted.
    const hasAll = answer.grants.length >= wanted && wanted < maxBatch && !isRepeated;
    return hasAll ? undefined : answer.retryInMs;
  }

  async #repeatLostTake(): Promise<void> {
    const { nowMs, logger } = this.#ports;
    const deadlineMs = nowMs() + lastAnswerTimeoutMs;
    while (this.#stopping.signal.aborted && this.#isAnswerLost && nowMs() < deadlineMs) {
      try {
        // Asks only for the result of the lost take, not for more calls.
        await this.#take(0);
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
