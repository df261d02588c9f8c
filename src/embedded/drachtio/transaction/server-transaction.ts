// Server transactions: RFC 3261 section 17.2 with the Accepted state of RFC 6026. One function per state and one timer per
// transaction. The response texts are kept as sent, so that a retransmitted request costs one send and no formatting.

import type { EngineClock, SipTimers } from './engine-timing.ts';
import { TransactionTimer } from './transaction-timer.ts';

export type ServerTransactionDeps = {
  readonly clock: EngineClock;
  readonly timers: SipTimers;
  readonly reliable: boolean;
  readonly send: (text: string) => void;
  /** INVITE only: the caller did not acknowledge the 2xx within 64 * T1. */
  readonly onAckTimeout: () => void;
  /** The application did not answer in time: the caller has long given up. */
  readonly onAnswerTimeout: () => void;
  readonly onTerminated: () => void;
};

type InviteServerState = 'proceeding' | 'accepted' | 'completed' | 'confirmed' | 'terminated';

export class InviteServerTransaction {
  readonly #deps: ServerTransactionDeps;
  #state: InviteServerState = 'proceeding';
  readonly #timer: TransactionTimer;
  #lastResponse: string | undefined;

  constructor(deps: ServerTransactionDeps) {
    this.#deps = deps;
    this.#timer = new TransactionTimer(deps.clock, deps.timers);
    this.#timer.after(deps.timers.inviteAnswerMs, () => deps.onAnswerTimeout());
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
      else this.#timer.after(this.#deps.timers.t4Ms, () => this.#terminate());
      return true;
    }
    if (this.#state !== 'accepted') return false;
    this.#state = 'confirmed';
    this.#timer.afterLife(() => this.#terminate());
    return true;
  }

  stop(): void {
    this.#timer.stop();
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

  #startRetransmits(onEnd: () => void): void {
    const { timers, reliable, send } = this.#deps;
    const sendAgain = (): void => {
      if (this.#lastResponse !== undefined) send(this.#lastResponse);
    };
    this.#timer.retransmit({ send: sendAgain, longestIntervalMs: timers.t2Ms, reliable, onEnd });
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
  readonly #timer: TransactionTimer;
  #lastResponse: string | undefined;

  constructor(deps: ServerTransactionDeps) {
    this.#deps = deps;
    this.#timer = new TransactionTimer(deps.clock, deps.timers);
    this.#timer.afterLife(() => {
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
    else this.#timer.afterLife(() => this.#terminate());
    return true;
  }

  stop(): void {
    this.#timer.stop();
    this.#state = 'terminated';
  }

  #terminate(): void {
    if (this.#state === 'terminated') return;
    this.stop();
    this.#deps.onTerminated();
  }
}
