// Server transactions: RFC 3261 section 17.2 with the Accepted state of RFC 6026. One function per state and one timer per
// transaction. The response texts are kept as sent, so that a retransmitted request costs one send and no formatting.

import type { EngineClock, SipTimers, TimerHandle } from './engine-timing.ts';
import { transactionLifeMs } from './engine-timing.ts';

export type ServerTransactionDeps = {
  readonly clock: EngineClock;
  readonly timers: SipTimers;
  readonly reliable: boolean;
  readonly send: (text: string) => void;
  /** INVITE only: nobody acknowledged the 2xx within 64 * T1. */
  readonly onAckTimeout: () => void;
  /** Nobody answered in time: the caller has long given up. */
  readonly onAnswerTimeout: () => void;
  readonly onTerminated: () => void;
};

type InviteServerState = 'proceeding' | 'accepted' | 'completed' | 'confirmed' | 'terminated';

export class InviteServerTransaction {
  readonly #deps: ServerTransactionDeps;
  #state: InviteServerState = 'proceeding';
  #timer: TimerHandle | undefined;
  #lastResponse: string | undefined;
  #intervalMs: number;
  #deadline = 0;

  constructor(deps: ServerTransactionDeps) {
    this.#deps = deps;
    this.#intervalMs = deps.timers.t1Ms;
    this.#arm(deps.timers.inviteAnswerMs, () => deps.onAnswerTimeout());
  }

  get state(): InviteServerState {
    return this.#state;
  }

  /** The same INVITE again. */
  receiveRetransmit(): void {
    switch (this.#state) {
      case 'proceeding':
      case 'completed':
        if (this.#lastResponse !== undefined) this.#deps.send(this.#lastResponse);
        return;
      case 'accepted':
      case 'confirmed':
      case 'terminated':
        // RFC 6026 section 7.1: absorbed; the 2xx has its own schedule.
        return;
    }
  }

  respond(status: number, text: string): boolean {
    if (this.#state !== 'proceeding') return false;
    this.#lastResponse = text;
    if (status >= 300) this.#complete();
    else if (status >= 200) this.#accept();
    this.#deps.send(text);
    return true;
  }

  /** An ACK for this transaction, or for the 2xx that it carried. */
  acknowledge(): boolean {
    if (this.#state === 'completed') {
      this.#state = 'confirmed';
      if (this.#deps.reliable) this.#terminate();
      else this.#arm(this.#deps.timers.t4Ms, () => this.#terminate());
      return true;
    }
    if (this.#state !== 'accepted') return false;
    this.#state = 'confirmed';
    this.#arm(transactionLifeMs(this.#deps.timers), () => this.#terminate());
    return true;
  }

  stop(): void {
    this.#deps.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#state = 'terminated';
  }

  #accept(): void {
    this.#state = 'accepted';
    this.#startRetransmits(() => {
      this.#deps.onAckTimeout();
      this.#terminate();
    });
  }

  #complete(): void {
    this.#state = 'completed';
    this.#startRetransmits(() => this.#terminate());
  }

  #startRetransmits(onDeadline: () => void): void {
    this.#deadline = this.#deps.clock.now() + transactionLifeMs(this.#deps.timers);
    this.#armRetransmit(onDeadline);
  }

  #armRetransmit(onDeadline: () => void): void {
    const remainingMs = this.#deadline - this.#deps.clock.now();
    if (this.#deps.reliable || remainingMs <= this.#intervalMs) {
      this.#arm(Math.max(0, remainingMs), onDeadline);
      return;
    }
    this.#arm(this.#intervalMs, () => {
      this.#intervalMs = Math.min(this.#intervalMs * 2, this.#deps.timers.t2Ms);
      this.#armRetransmit(onDeadline);
      if (this.#lastResponse !== undefined) this.#deps.send(this.#lastResponse);
    });
  }

  #arm(delayMs: number, callback: () => void): void {
    this.#deps.clock.clearTimer(this.#timer);
    this.#timer = this.#deps.clock.setTimer(callback, delayMs);
  }

  #terminate(): void {
    if (this.#state === 'terminated') return;
    this.stop();
    this.#deps.onTerminated();
  }
}

type NonInviteServerState = 'trying' | 'completed' | 'terminated';

export class NonInviteServerTransaction {
  readonly #deps: ServerTransactionDeps;
  #state: NonInviteServerState = 'trying';
  #timer: TimerHandle | undefined;
  #lastResponse: string | undefined;

  constructor(deps: ServerTransactionDeps) {
    this.#deps = deps;
    this.#arm(transactionLifeMs(deps.timers), () => {
      deps.onAnswerTimeout();
      this.#terminate();
    });
  }

  get state(): NonInviteServerState {
    return this.#state;
  }

  receiveRetransmit(): void {
    if (this.#state !== 'terminated' && this.#lastResponse !== undefined) {
      this.#deps.send(this.#lastResponse);
    }
  }

  respond(status: number, text: string): boolean {
    if (this.#state !== 'trying') return false;
    this.#lastResponse = text;
    this.#deps.send(text);
    if (status < 200) return true;
    this.#state = 'completed';
    if (this.#deps.reliable) this.#terminate();
    else this.#arm(transactionLifeMs(this.#deps.timers), () => this.#terminate());
    return true;
  }

  stop(): void {
    this.#deps.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#state = 'terminated';
  }

  #arm(delayMs: number, callback: () => void): void {
    this.#deps.clock.clearTimer(this.#timer);
    this.#timer = this.#deps.clock.setTimer(callback, delayMs);
  }

  #terminate(): void {
    if (this.#state === 'terminated') return;
    this.stop();
    this.#deps.onTerminated();
  }
}
