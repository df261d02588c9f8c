// Client transactions: RFC 3261 section 17.1 with the Accepted state of RFC 6026. One function per state; one timer per
// transaction, re-armed for whatever comes next. They know nothing of dialogs or of drachtio.

import type { SipResponse } from '../message/sip-message.ts';
import type { EngineClock, SipTimers } from './engine-timing.ts';
import { TransactionTimer } from './transaction-timer.ts';

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
  readonly #timer: TransactionTimer;
  #cancelled = false;

  constructor(deps: ClientTransactionDeps) {
    this.#deps = deps;
    this.#timer = new TransactionTimer(deps.clock, deps.timers);
  }

  get state(): InviteState {
    return this.#state;
  }

  start(): void {
    this.#timer.retransmit({
      send: this.#deps.sendRequest,
      // Timer A has no ceiling.
      longestIntervalMs: Number.POSITIVE_INFINITY,
      reliable: this.#deps.reliable,
      onEnd: () => this.#timeOut(),
    });
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
    this.#timer.afterLife(() => this.#timeOut());
  }

  stop(): void {
    this.#timer.stop();
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
    if (!this.#cancelled)
      this.#timer.after(this.#deps.timers.timerCMs, () => this.#deps.onRingTimeout());
    this.#deps.onResponse(response);
  }

  #receiveSuccess(response: SipResponse): void {
    this.#state = 'accepted';
    this.#timer.afterLife(() => this.#terminate());
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
    this.#timer.afterLife(() => this.#terminate());
  }

  #timeOut(): void {
    this.#deps.onTimeout();
    this.#terminate();
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
  readonly #timer: TransactionTimer;

  constructor(deps: ClientTransactionDeps) {
    this.#deps = deps;
    this.#timer = new TransactionTimer(deps.clock, deps.timers);
  }

  get state(): NonInviteState {
    return this.#state;
  }

  start(): void {
    this.#timer.retransmit({
      send: this.#deps.sendRequest,
      longestIntervalMs: this.#deps.timers.t2Ms,
      reliable: this.#deps.reliable,
      onEnd: () => this.#timeOut(),
    });
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
    this.#timer.stop();
    this.#state = 'terminated';
  }

  #receivePending(response: SipResponse): void {
    if (response.status < 200) {
      this.#state = 'proceeding';
      this.#timer.slowDown();
      this.#deps.onResponse(response);
      return;
    }
    this.#deps.onResponse(response);
    if (this.#deps.reliable) {
      this.#terminate();
      return;
    }
    this.#state = 'completed';
    this.#timer.after(this.#deps.timers.t4Ms, () => this.#terminate());
  }

  #timeOut(): void {
    this.#deps.onTimeout();
    this.#terminate();
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
