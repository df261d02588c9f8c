// Places for calls that are being accepted here. Where this process has room, and nothing waits before them, they are stored as taken by
// it: a take of their own would be one statement more, and another process might be faster, which would then have to learn all about them.
//
// open      The call is being stored. Left with its answer: the call starts, or there is none.
// doubtful  The answer was lost, or came when this process may not start calls: the call may be stored as this process's, and no
//           INVITE of it has left. It is given back, to wait and be taken like any other; again and again, as long as the statement may still
//           commit.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallTakes } from '../calls/dialout-ports.ts';
import { Changes } from '../lib/changes.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';

export type Reservation = {
  /** It is stored, as taken by this process. */
  start(call: AcceptedCall): void;
  /** Nothing was stored. */
  cancel(): void;
  /** It may have been stored. */
  doubt(): void;
};

export type ReservationPorts = {
  readonly takes: Pick<CallTakes, 'giveBack'>;
  readonly places: { hold(count: number): void; giveBack(count: number): void };
  /** False: no INVITE may leave by the time it is ready. */
  readonly mayStart: () => boolean;
  readonly start: (call: AcceptedCall) => void;
  readonly nowMs: () => number;
  readonly logger: Logger;
};

/** Twice what the database lets a statement take. */
const doubtfulForMs = 30_000;
/** Failures of a moment. While there are more, calls are taken when they are stored. */
const mostDoubtful = 1_000;
const lastAnswersTimeoutMs = 10_000;
const askAgainMs = 1_000;

export class Reservations {
  readonly #ports: ReservationPorts;
  /** Until when they are given back. */
  readonly #doubtful = new Map<CallId, number>();
  readonly #closings = new Changes();
  readonly #open = new Set<CallId>();
  #isStopped = false;

  constructor(ports: ReservationPorts) {
    this.#ports = ports;
  }

  /** Undefined: too much is in doubt. */
  open(callId: CallId): Reservation | undefined {
    if (this.#isStopped || this.#doubtful.size >= mostDoubtful) return undefined;
    this.#open.add(callId);
    this.#ports.places.hold(1);
    return {
      start: (call) => {
        // Stored too late for this process, it is for others.
        if (this.#isStopped || !this.#ports.mayStart()) this.#doubt(callId);
        else this.#ports.start(call);
        this.#close(callId);
      },
      cancel: () => this.#close(callId),
      doubt: () => {
        this.#doubt(callId);
        this.#close(callId);
      },
    };
  }

  /** Calls that SQL may have as this process's, and that are none of its calls yet. */
  get callIds(): readonly CallId[] {
    return [...this.#open, ...this.#doubtful.keys()];
  }

  get hasDoubtful(): boolean {
    return this.#doubtful.size > 0;
  }

  /** @throws Error while the database is unreachable. */
  async giveBack(): Promise<void> {
    if (!this.hasDoubtful) return;
    const { takes, nowMs } = this.#ports;
    const askedAtMs = nowMs();
    const doubtful = [...this.#doubtful];
    const found = new Set(await takes.giveBack(doubtful.map(([callId]) => callId)));
    for (const [callId, untilMs] of doubtful) {
      if (found.has(callId) || askedAtMs >= untilMs) this.#doubtful.delete(callId);
    }
  }

  /** It has a machine here now: if it was in doubt, it is not given back any more. */
  begun(callId: CallId): void {
    this.#doubtful.delete(callId);
  }

  /** Opens no more; what is stored now is left to others, as far as the database answers in time. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const signal = AbortSignal.timeout(lastAnswersTimeoutMs);
    await this.#closings.until(() => this.#open.size === 0, signal);
    // Twice: what was not there the first time may have been about to commit.
    let answersWanted = 2;
    while (this.hasDoubtful && answersWanted > 0 && !signal.aborted) {
      await within(
        this.#giveBackOrWarn().then((isAnswered) => {
          if (isAnswered) answersWanted -= 1;
        }),
        signal,
      );
      if (this.hasDoubtful && answersWanted > 0) await within(pause(askAgainMs), signal);
    }
  }

  /** False: the database is unreachable. */
  async #giveBackOrWarn(): Promise<boolean> {
    try {
      await this.giveBack();
      return true;
    } catch (error) {
      this.#ports.logger.warn({ err: error }, 'calls that were just accepted are not given back');
      return false;
    }
  }

  #close(callId: CallId): void {
    this.#open.delete(callId);
    this.#ports.places.giveBack(1);
    this.#closings.tell();
  }

  #doubt(callId: CallId): void {
    this.#doubtful.set(callId, this.#ports.nowMs() + doubtfulForMs);
    // The stop may be over, and no sweep may come any more.
    if (!this.#isStopped) return;
    inBackground(this.#giveBackOrWarn(), this.#ports.logger, 'giving calls back after the stop');
  }
}
