// Takes the calls of one source, a trunk or those that are dialled directly, while this process has room, and starts each a
// moment before the instant at which its INVITE may leave. Every node has one for each source; SQL shares the calls out.
//
// idle      Nothing is asked. Left when a call may wait, or a place may be free (`wake`).
// asking    A take is under way. Answered: its calls are started, and it is asked again when more could be had.
// doubtful  The answer was lost: the take may stand. The same take is asked for until it is answered, room or not, while this
//           process drains too, because no other process will dial what it took. Bounded when the process ends.
// stopped   Nothing more is taken.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallSource, CallTakes, Grant, Turn } from '../calls/dialout-ports.ts';
import { createTurn, type StartInstant, type TurnPorts, timed } from './turn.ts';

export type TakerPorts = TurnPorts & {
  readonly takes: Pick<CallTakes, 'take'>;
  readonly places: {
    /** For how many more calls this process has room. */
    free(): number;
    hold(count: number): void;
    giveBack(count: number): void;
  };
  /** False: no INVITE may leave by the time it is ready, so that what is taken would fail. */
  readonly mayTake: () => boolean;
  /** The call is this process's: starts its machine. Its INVITE waits for the turn; undefined: it may leave at once. */
  readonly start: (grant: Grant, turn: Turn | undefined) => void;
};

/**
 * Starts are taken so far ahead: long enough to be worth a transaction, short enough that a node that dies takes few
 * calls with it, and that nodes take turns.
 */
const horizonMs = 200;
/** What a call needs before its INVITE is ready takes most of this on a busy machine, and less on others. */
const preparationMs = 100;
const mostAtOnce = 50;
const failurePauseMs = 1_000;
/** SQL that has not answered by then is unreachable: the process that takes over ends the calls of a take that stands. */
const lastAnswerTimeoutMs = 10_000;

export class SourceTaker {
  readonly #source: CallSource;
  readonly #ports: TakerPorts;
  readonly #stopping = new AbortController();
  /** Calls that are taken and not started. */
  readonly #starting = new Map<CallId, Promise<void>>();
  #takeId = 0;
  #isDoubtful = false;
  #running: Promise<void> | undefined;
  /** Calls to ask for; 0: nothing is to be asked. */
  #wanted = 0;

  constructor(source: CallSource, ports: TakerPorts) {
    this.#source = source;
    this.#ports = ports;
  }

  /** A take is under way, or its answer was lost: SQL may know calls of this process that it has not heard of. */
  get isUnanswered(): boolean {
    return this.#running !== undefined || this.#isDoubtful;
  }

  isStarting(callId: CallId): boolean {
    return this.#starting.has(callId);
  }

  /**
   * Calls may wait, or a place may be free. `count`: of so many calls it is known that they wait; nodes that accept calls at the same
   * time thus take about what each has accepted.
   */
  wake(count = mostAtOnce): void {
    this.#wanted = Math.min(mostAtOnce, this.#wanted + count);
    if (this.#stopping.signal.aborted) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#wanted > 0) this.wake(0);
    });
  }

  /** Takes no more calls; resolves when those that are taken have started. */
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
      this.#wanted = mostAtOnce;
      // Aborted: the loop ends by itself.
      await pause(Math.ceil(retryInMs), undefined, { signal }).catch(() => undefined);
    }
    await this.#learnLastAnswer();
  }

  /** When to try again without being woken; undefined: not before. */
  async #ask(known: number): Promise<number | undefined> {
    const { places, mayTake } = this.#ports;
    if (!mayTake()) return this.#isDoubtful ? failurePauseMs : undefined;
    const wanted = Math.max(0, Math.min(known, places.free()));
    // Calls that end here make room, and wake.
    if (wanted < 1 && !this.#isDoubtful) return undefined;
    places.hold(wanted);
    try {
      return await this.#take(wanted);
    } catch (error) {
      this.#isDoubtful = true;
      this.#ports.logger.warn({ err: error, trunk: this.#source }, 'calls could not be taken');
      return failurePauseMs;
    } finally {
      places.giveBack(wanted);
    }
  }

  async #take(wanted: number): Promise<number | undefined> {
    const { takes, limits, nowMs } = this.#ports;
    const isRepeated = this.#isDoubtful;
    if (!isRepeated) this.#takeId += 1;
    const request = { takeId: this.#takeId, isRepeated, source: this.#source, wanted, horizonMs };
    const { answer, startOf } = await timed(nowMs, () =>
      takes.take({ ...request, limits: limits() }),
    );
    this.#isDoubtful = false;
    for (const grant of answer.grants) this.#startLater(grant, startOf(grant.startInMs));
    // Those that were known to wait are taken; the processes that accepted others ask for them.
    const hasAll = answer.grants.length >= wanted && wanted < mostAtOnce && !isRepeated;
    return hasAll ? undefined : answer.retryInMs;
  }

  async #learnLastAnswer(): Promise<void> {
    const { nowMs, logger } = this.#ports;
    const deadlineMs = nowMs() + lastAnswerTimeoutMs;
    while (this.#stopping.signal.aborted && this.#isDoubtful && nowMs() < deadlineMs) {
      try {
        // Whatever it holds is ours already; nothing more is wanted.
        await this.#take(0);
      } catch (error) {
        logger.warn({ err: error, trunk: this.#source }, 'the last take is not answered');
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
