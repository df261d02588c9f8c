// Client transactions: RFC 3261 section 17.1 with the Accepted state of RFC 6026. One function per state; one timer per
// transaction, re-armed for whatever comes next. They know nothing of dialogs or of drachtio.

import type { EngineClock, SipTimers, TimerHandle } from './engine-timing.ts';
import { transactionLifeMs } from './engine-timing.ts';
import type { SipResponse } from './sip-message.ts';

export type ClientTransactionDeps = {
  readonly clock: EngineClock;
  readonly timers: SipTimers;
  /** TCP: nothing is retransmitted and nothing is waited out. */
  readonly reliable: boolean;
  readonly sendRequest: () => void;
  /** INVITE only: the ACK to a final response of 300 and above. */
  readonly sendAck: (response: SipResponse) => void;
  /** Every response that the user must see. A 2xx to INVITE is passed each time that it arrives. */
  readonly onResponse: (response: SipResponse) => void;
  /** Timer B or F, or C after a CANCEL that brought no final response. */
  readonly onTimeout: () => void;
  /** INVITE only: it rang too long and must be cancelled. */
  readonly onRingTimeout: () => void;
  readonly onTerminated: () => void;
};

type InviteState = 'calling' | 'proceeding' | 'accepted' | 'completed' | 'terminated';

export class InviteClientTransaction {
  readonly #deps: ClientTransactionDeps;
  #state: InviteState = 'calling';
  #timer: TimerHandle | undefined;
  #intervalMs: number;
  #deadline = 0;
  #cancelled = false;

  constructor(deps: ClientTransactionDeps) {
    this.#deps = deps;
    this.#intervalMs = deps.timers.t1Ms;
  }

  get state(): InviteState {
    return this.#state;
  }

  start(): void {
    this.#deadline = this.#deps.clock.now() + transactionLifeMs(this.#deps.timers);
    this.#armCalling();
    this.#deps.sendRequest();
  }

  receive(response: SipResponse): void {
    switch (this.#state) {
      case 'calling':
      case 'proceeding':
        this.#receivePending(response);
        return;
      case 'accepted':
        // RFC 6026 section 7.2: a 2xx, also from another branch of a fork, is the user's business.
        if (isSuccess(response)) this.#deps.onResponse(response);
        return;
      case 'completed':
        if (response.status >= 300) this.#deps.sendAck(response);
        return;
      case 'terminated':
        return;
    }
  }

  /**
   * The request could not be delivered (ICMP, RST); true if that ends the transaction, the caller tells the user. Once it
   * rings, a lost connection is no failure: the final response may come on another (RFC 3261 section 18.2.2).
   */
  fail(): boolean {
    if (this.#state !== 'calling') return false;
    this.#terminate();
    return true;
  }

  /** A CANCEL has left: RFC 3261 section 9.1 gives the final response 64 * T1 more. */
  expectFinalSoon(): void {
    if (this.#state !== 'proceeding') return;
    this.#cancelled = true;
    this.#arm(transactionLifeMs(this.#deps.timers), () => this.#timeOut());
  }

  stop(): void {
    this.#deps.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#state = 'terminated';
  }

  #receivePending(response: SipResponse): void {
    if (response.status < 200) {
      this.#receiveProvisional(response);
      return;
    }
    if (isSuccess(response)) {
      this.#receiveSuccess(response);
      return;
    }
    this.#receiveFailure(response);
  }

  #receiveProvisional(response: SipResponse): void {
    this.#state = 'proceeding';
    if (!this.#cancelled) this.#arm(this.#deps.timers.timerCMs, () => this.#deps.onRingTimeout());
    this.#deps.onResponse(response);
  }

  #receiveSuccess(response: SipResponse): void {
    this.#state = 'accepted';
    this.#arm(transactionLifeMs(this.#deps.timers), () => this.#terminate());
    this.#deps.onResponse(response);
  }

  #receiveFailure(response: SipResponse): void {
    this.#deps.sendAck(response);
    this.#deps.onResponse(response);
    if (this.#deps.reliable) {
      this.#terminate();
      return;
    }
    this.#state = 'completed';
    this.#arm(transactionLifeMs(this.#deps.timers), () => this.#terminate());
  }

  #armCalling(): void {
    const remainingMs = this.#deadline - this.#deps.clock.now();
    if (this.#deps.reliable || remainingMs <= this.#intervalMs) {
      this.#arm(Math.max(0, remainingMs), () => this.#timeOut());
    } else {
      this.#arm(this.#intervalMs, () => this.#retransmit());
    }
  }

  #retransmit(): void {
    this.#intervalMs *= 2;
    this.#armCalling();
    this.#deps.sendRequest();
  }

  #timeOut(): void {
    this.#deps.onTimeout();
    this.#terminate();
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

type NonInviteState = 'trying' | 'proceeding' | 'completed' | 'terminated';

export class NonInviteClientTransaction {
  readonly #deps: ClientTransactionDeps;
  #state: NonInviteState = 'trying';
  #timer: TimerHandle | undefined;
  #intervalMs: number;
  #deadline = 0;

  constructor(deps: ClientTransactionDeps) {
    this.#deps = deps;
    this.#intervalMs = deps.timers.t1Ms;
  }

  get state(): NonInviteState {
    return this.#state;
  }

  start(): void {
    this.#deadline = this.#deps.clock.now() + transactionLifeMs(this.#deps.timers);
    this.#armPending();
    this.#deps.sendRequest();
  }

  receive(response: SipResponse): void {
    switch (this.#state) {
      case 'trying':
      case 'proceeding':
        this.#receivePending(response);
        return;
      case 'completed':
      case 'terminated':
        return;
    }
  }

  fail(): boolean {
    if (this.#state !== 'trying' && this.#state !== 'proceeding') return false;
    this.#terminate();
    return true;
  }

  stop(): void {
    this.#deps.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#state = 'terminated';
  }

  #receivePending(response: SipResponse): void {
    if (response.status < 200) {
      // RFC 3261 section 17.1.2.2: retransmits go on, at T2.
      this.#state = 'proceeding';
      this.#intervalMs = this.#deps.timers.t2Ms;
      this.#deps.onResponse(response);
      return;
    }
    this.#deps.onResponse(response);
    if (this.#deps.reliable) {
      this.#terminate();
      return;
    }
    this.#state = 'completed';
    this.#arm(this.#deps.timers.t4Ms, () => this.#terminate());
  }

  #armPending(): void {
    const remainingMs = this.#deadline - this.#deps.clock.now();
    if (this.#deps.reliable || remainingMs <= this.#intervalMs) {
      this.#arm(Math.max(0, remainingMs), () => this.#timeOut());
    } else {
      this.#arm(this.#intervalMs, () => this.#retransmit());
    }
  }

  #retransmit(): void {
    this.#intervalMs = Math.min(this.#intervalMs * 2, this.#deps.timers.t2Ms);
    this.#armPending();
    this.#deps.sendRequest();
  }

  #timeOut(): void {
    this.#deps.onTimeout();
    this.#terminate();
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

function isSuccess(response: SipResponse): boolean {
  return response.status >= 200 && response.status < 300;
}
