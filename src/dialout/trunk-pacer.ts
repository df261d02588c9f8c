// Dials what waits for one trunk with limits: takes calls when the trunk has room, starts each a moment before the instant
// that the trunk's clock gave it, and says when that has come, which is when its INVITE may leave. Every node has one for
// each such trunk; the clock and the slots in SQL are theirs together.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { Grant, TrunkLimits, TrunkQueue } from '../calls/dialout-ports.ts';
import { DistantClock } from '../lib/distant-clock.ts';
import type { Logger } from '../lib/logger.ts';

/**
 * Asked when the INVITE is ready: resolves when it may leave, or is not wanted any more; never rejects. An INVITE that is late
 * takes another start, which costs the trunk one: hence `isWanted`.
 */
export type Turn = (isWanted: () => boolean) => Promise<void>;

export type PacerPorts = {
  readonly queue: TrunkQueue;
  /** Read anew each time: trunks can be reloaded. Undefined: no limits any more. */
  readonly limits: () => TrunkLimits | undefined;
  /** Calls of the trunk that have started here and may hold a slot. */
  readonly known: () => readonly CallId[];
  /** How many more calls this process can have. */
  readonly room: () => number;
  readonly start: (call: AcceptedCall, turn: Turn) => void;
  /** True: the call has waited too long, and has its end. */
  readonly endIfExpired: (call: AcceptedCall) => Promise<boolean>;
  readonly nowMs: () => number;
  readonly logger: Logger;
};

/**
 * Starts are taken so far ahead: long enough to be worth a transaction, short enough that a node that dies takes few
 * calls with it, and that nodes take turns.
 */
const horizonMs = 200;
/** What a call needs before its INVITE is ready takes most of this on a busy machine, and less on others. */
const preparationMs = 100;
/**
 * A start that is later than this, and than this share of the time between two, would crowd the ones after it, on this node or
 * another: it takes its turn again. On a slow trunk that is a long way off, for the call and for whoever wants to end it.
 */
const lateMs = 40;
const lateShare = 0.1;
const mostAtOnce = 50;
const failurePauseMs = 1_000;
/** A statement whose answer was lost may still be at work, at most until its own time-out of 15 s. */
const doubtMs = 20_000;

export class TrunkPacer {
  readonly #trunk: string;
  readonly #ports: PacerPorts;
  readonly #clock = new DistantClock();
  readonly #stopped = new AbortController();
  /** Calls that are taken and not started. */
  readonly #starting = new Map<CallId, Promise<void>>();
  #running: Promise<void> | undefined;
  #isWoken = false;
  /** Until then calls may turn up that were taken for this process without its knowledge. Infinite: SQL is still away. */
  #doubtUntilMs = 0;

  constructor(trunk: string, ports: PacerPorts) {
    this.#trunk = trunk;
    this.#ports = ports;
  }

  /** A call may wait, or a slot may be free. */
  wake(): void {
    this.#isWoken = true;
    if (this.#stopped.signal.aborted) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#isWoken) this.wake();
    });
  }

  isStarting(callId: CallId): boolean {
    return this.#starting.has(callId);
  }

  /** Takes no more calls; resolves when those that are taken have started. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#isWoken = false;
    await this.#running;
    await Promise.all(this.#starting.values());
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    while (this.#isWoken && !signal.aborted) {
      this.#isWoken = false;
      const retryInMs = await this.#round();
      if (retryInMs === undefined) continue;
      this.#isWoken = true;
      // Aborted: the loop ends by itself.
      await pause(Math.ceil(retryInMs), undefined, { signal }).catch(() => undefined);
    }
  }

  /** When to try again without being woken; undefined: not before. */
  async #round(): Promise<number | undefined> {
    const { queue, limits, room, nowMs, logger } = this.#ports;
    const wanted = Math.min(mostAtOnce, room() - this.#starting.size);
    // Calls that end here make room, and wake. A lease that is held again does not.
    if (wanted < 1) return nowMs() < this.#doubtUntilMs ? failurePauseMs : undefined;
    const trunk = this.#trunk;
    try {
      const { grants, retryInMs } = await this.#timed(() =>
        queue.take({ trunk, limits: limits() ?? {}, wanted, horizonMs }),
      );
      for (const grant of grants) this.#startLater(grant);
      if (this.#doubtUntilMs === Number.POSITIVE_INFINITY) this.#doubtUntilMs = nowMs() + doubtMs;
      if (nowMs() >= this.#doubtUntilMs) return retryInMs;
      await this.#startUntold();
      return Math.min(retryInMs ?? failurePauseMs, failurePauseMs);
    } catch (error) {
      this.#doubtUntilMs = Number.POSITIVE_INFINITY;
      logger.warn({ err: error, trunk }, 'calls of a trunk could not be taken');
      return failurePauseMs;
    }
  }

  /** They have missed their start: each takes a new one. */
  async #startUntold(): Promise<void> {
    const { queue, known, room, endIfExpired, logger } = this.#ports;
    const trunk = this.#trunk;
    const calls = await queue.untold(trunk, [...known(), ...this.#starting.keys()]);
    if (calls.length > 0) logger.warn({ trunk, calls: calls.length }, 'calls taken unawares');
    for (const call of calls) {
      if (room() - this.#starting.size < 1) return;
      if (!(await endIfExpired(call))) this.#startLater({ call, startAtMs: 0 });
    }
  }

  /** Asks the database, and learns from the answer what its clock says. */
  async #timed<Answer extends { readonly clockMs: number }>(
    ask: () => Promise<Answer>,
  ): Promise<Answer> {
    const { nowMs } = this.#ports;
    const askedAtMs = nowMs();
    const answer = await ask();
    this.#clock.learn({ askedAtMs, answeredAtMs: nowMs(), clockMs: answer.clockMs });
    return answer;
  }

  #startLater({ call, startAtMs }: Grant): void {
    const { callId } = call;
    const starting = this.#startBefore(call, startAtMs).finally(() =>
      this.#starting.delete(callId),
    );
    this.#starting.set(callId, starting);
  }

  async #startBefore(call: AcceptedCall, startAtMs: number): Promise<void> {
    const { nowMs, start } = this.#ports;
    const leftMs = this.#clock.hereMs(startAtMs) - preparationMs - nowMs();
    if (leftMs > 0) await pause(leftMs);
    start(call, (isWanted) => this.#turn(call, startAtMs, isWanted));
  }

  async #turn(call: AcceptedCall, startAtMs: number, isWanted: () => boolean): Promise<void> {
    const { nowMs, queue, logger } = this.#ports;
    let dueMs = this.#clock.hereMs(startAtMs);
    for (let turn = 0; ; turn += 1) {
      if (dueMs > nowMs()) await pause(dueMs - nowMs());
      const rate = this.#ports.limits()?.callsPerSecond;
      if (rate === undefined || turn === mostTurns || !isWanted()) return;
      const intervalMs = 1_000 / rate;
      if (nowMs() - dueMs <= Math.max(lateMs, intervalMs * lateShare)) return;
      try {
        const next = await this.#timed(() => queue.nextStart(this.#trunk, intervalMs));
        dueMs = this.#clock.hereMs(next.startAtMs);
      } catch (error) {
        logger.warn({ err: error, callId: call.callId }, 'no later start for a call');
        return;
      }
    }
  }
}

/** A machine that is late so often in a row is overloaded, and its calls would never leave. */
const mostTurns = 5;
