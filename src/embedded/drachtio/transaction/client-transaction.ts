// Client transactions: RFC 3261 section 17.1 plus RFC 6026's Accepted state. Each has one function
// per state, and a single timer that we re-arm for the next step. They don't know about dialogs or
// drachtio.

import type { SipResponse } from '../message/sip-message.ts';
import { Transaction, type TransactionDeps } from './transaction-timer.ts';

export type ClientTransactionDeps = TransactionDeps & {
  readonly sendRequest: () => void;
  /** INVITE only: sends the ACK for a final response of 300 or above. */
  readonly sendAck: (response: SipResponse) => void;
  /**
   * Receives every response that the user needs to see, including each retransmission of a 2xx to
   * an INVITE.
   */
  readonly onResponse: (response: SipResponse) => void;
  /** Timer B or F expired, or no final response followed a CANCEL. */
  readonly onTimeout: () => void;
  /** INVITE only: the call rang too long and must be cancelled. */
  readonly onRingTimeout: () => void;
};

type InviteState = 'calling' | 'proceeding' | 'accepted' | 'completed';

export class InviteClientTransaction extends Transaction<InviteState, ClientTransactionDeps> {
  #cancelled = false;

  constructor(deps: ClientTransactionDeps) {
    super(deps, 'calling');
  }

  start(): void {
    this.timer.retransmit({
      send: this.deps.sendRequest,
      // Timer A has no upper limit.
      maxIntervalMs: Number.POSITIVE_INFINITY,
      reliable: this.deps.reliable,
      onEnd: () => this.#timeOut(),
    });
    this.deps.sendRequest();
  }

  receive(response: SipResponse): void {
    switch (this.state) {
      case 'calling':
      case 'proceeding':
        this.#receivePending(response);
        return;
      case 'accepted':
        // Per RFC 6026 section 7.2, the user handles every 2xx, even one from a different fork
        // branch.
        if (isSuccess(response)) this.deps.onResponse(response);
        return;
      case 'completed':
        if (response.status >= 300) this.deps.sendAck(response);
        return;
      case 'terminated':
        return;
    }
  }

  /**
   * Call this if the request couldn't be delivered (ICMP, RST). Returns true if that ends the
   * transaction, in which case the caller must notify the user. Once the call is ringing, a lost
   * connection isn't a failure, because the final response may arrive on a different one (RFC 3261
   * section 18.2.2).
   */
  fail(): boolean {
    if (this.state !== 'calling') return false;
    this.terminate();
    return true;
  }

  /**
   * Call this after sending a CANCEL. RFC 3261 section 9.1 then allows 64 * T1 for the final
   * response.
   */
  expectFinalSoon(): void {
    if (this.state !== 'proceeding') return;
    this.#cancelled = true;
    this.timer.afterLife(() => this.#timeOut());
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
    this.enter('proceeding');
    if (!this.#cancelled)
      this.timer.after(this.deps.timers.timerCMs, () => this.deps.onRingTimeout());
    this.deps.onResponse(response);
  }

  #receiveSuccess(response: SipResponse): void {
    this.enter('accepted');
    this.timer.afterLife(() => this.terminate());
    this.deps.onResponse(response);
  }

  #receiveFailure(response: SipResponse): void {
    this.deps.sendAck(response);
    this.deps.onResponse(response);
    if (this.deps.reliable) {
      this.terminate();
      return;
    }
    this.enter('completed');
    this.timer.afterLife(() => this.terminate());
  }

  #timeOut(): void {
    this.deps.onTimeout();
    this.terminate();
  }
}

type NonInviteState = 'trying' | 'proceeding' | 'completed';

export class NonInviteClientTransaction extends Transaction<NonInviteState, ClientTransactionDeps> {
  constructor(deps: ClientTransactionDeps) {
    super(deps, 'trying');
  }

  start(): void {
    this.timer.retransmit({
      send: this.deps.sendRequest,
      maxIntervalMs: this.deps.timers.t2Ms,
      reliable: this.deps.reliable,
      onEnd: () => this.#timeOut(),
    });
    this.deps.sendRequest();
  }

  receive(response: SipResponse): void {
    switch (this.state) {
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
    if (this.state !== 'trying' && this.state !== 'proceeding') return false;
    this.terminate();
    return true;
  }

  #receivePending(response: SipResponse): void {
    if (response.status < 200) {
      this.enter('proceeding');
      this.timer.slowDown();
      this.deps.onResponse(response);
      return;
    }
    this.deps.onResponse(response);
    if (this.deps.reliable) {
      this.terminate();
      return;
    }
    this.enter('completed');
    this.timer.after(this.deps.timers.t4Ms, () => this.terminate());
  }

  #timeOut(): void {
    this.deps.onTimeout();
    this.terminate();
  }
}

function isSuccess(response: SipResponse): boolean {
  return response.status >= 200 && response.status < 300;
}
