// A state and a timer, which client and server transactions have in common. The timer either fires
// once, or triggers retransmissions at growing intervals until 64 * T1 have passed (timers A and B,
// E and F, G and H in RFC 3261 section 17).

import {
  type EngineClock,
  type SipTimers,
  type TimerHandle,
  transactionLifeMs,
} from './engine-timing.ts';

export type Retransmission = {
  readonly send: () => void;
  /** The interval doubles until it reaches this value. */
  readonly maxIntervalMs: number;
  /** True over TCP, where there are no retransmissions, so the timer only calls `onEnd`. */
  readonly reliable: boolean;
  readonly onEnd: () => void;
};

export class TransactionTimer {
  readonly #clock: EngineClock;
  readonly #timers: SipTimers;
  #handle: TimerHandle | undefined;
  #intervalMs: number;
  #endAt = 0;

  constructor(clock: EngineClock, timers: SipTimers) {
    this.#clock = clock;
    this.#timers = timers;
    this.#intervalMs = timers.t1Ms;
  }

  /**
   * Fires once after `delayMs`. If the timer was already running, it's restarted for the new
   * purpose.
   */
  after(delayMs: number, callback: () => void): void {
    this.stop();
    this.#handle = this.#clock.setTimer(callback, delayMs);
  }

  afterLife(callback: () => void): void {
    this.after(transactionLifeMs(this.#timers), callback);
  }

  /**
   * Starts retransmitting after T1. The original message must be sent by the caller of this
   * function.
   */
  retransmit(retransmission: Retransmission): void {
    this.#endAt = this.#clock.now() + transactionLifeMs(this.#timers);
    this.#armRetransmit(retransmission);
  }

  /**
   * After a provisional response, the interval between retransmissions is T2 (RFC 3261 section
   * 17.1.2.2).
   */
  slowDown(): void {
    this.#intervalMs = this.#timers.t2Ms;
  }

  stop(): void {
    this.#clock.clearTimer(this.#handle);
    this.#handle = undefined;
  }

  #armRetransmit(retransmission: Retransmission): void {
    const { send, maxIntervalMs, reliable, onEnd } = retransmission;
    const remainingMs = this.#endAt - this.#clock.now();
    if (reliable || remainingMs <= this.#intervalMs) {
      this.after(Math.max(0, remainingMs), onEnd);
      return;
    }
    this.after(this.#intervalMs, () => {
      this.#intervalMs = Math.min(this.#intervalMs * 2, maxIntervalMs);
      this.#armRetransmit(retransmission);
      send();
    });
  }
}

export type TransactionDeps = {
  readonly clock: EngineClock;
  readonly timers: SipTimers;
  /**
   * True over TCP, where a transaction doesn't send retransmissions, and doesn't have to wait for
   * the peer's retransmissions before it ends.
   */
  readonly reliable: boolean;
  readonly onTerminated: () => void;
};

export abstract class Transaction<State extends string, Deps extends TransactionDeps> {
  protected readonly deps: Deps;
  protected readonly timer: TransactionTimer;
  #state: State | 'terminated';

  protected constructor(deps: Deps, firstState: State) {
    this.deps = deps;
    this.timer = new TransactionTimer(deps.clock, deps.timers);
    this.#state = firstState;
  }

  get state(): State | 'terminated' {
    return this.#state;
  }

  protected enter(state: State): void {
    this.#state = state;
  }

  stop(): void {
    this.timer.stop();
    this.#state = 'terminated';
  }

  protected terminate(): void {
    if (this.#state === 'terminated') return;
    this.stop();
    this.deps.onTerminated();
  }
}
