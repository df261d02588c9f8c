// Client transactions, per RFC 3261 section 17.1, with RFC 6026's Accepted state. There's one
// function per state, and a single timer per transaction, which we re-arm for each new state.
// Transactions don't know about dialogs or drachtio.

import type { SipResponse } from '../message/sip-message.ts';
import { Transaction, type TransactionDeps } from './transaction-timer.ts';

export type ClientTransactionDeps = TransactionDeps & {
  readonly sendRequest: () => void;
  /** INVITE only: sends the ACK for a final response with a status of 300 or above. */
  readonly sendAck: (response: SipResponse) => void;
  /**
   * Receives every response that the transaction user needs to see. Each retransmission of a 2xx to
   * an INVITE is included.
   */
  readonly onResponse: (response: SipResponse) => void;
  /** Timer B or F expired, or a CANCEL wasn't followed by a final response. */
  readonly onTimeout: () => void;
  /** INVITE only: the call has been ringing for too long and must be cancelled. */
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
      // There's no upper limit for timer A.
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
        // RFC 6026 section 7.2 says that the transaction user handles every 2xx, even if it comes
        // from a different fork branch.
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
   * transaction, in which case the caller must notify the transaction user. Losing the connection
   * isn't a failure once the call is ringing, because the final response may arrive on a different
   * connection (RFC 3261 section 18.2.2).
   */
  fail(): boolean {
    if (this.state !== 'calling') return false;
    this.terminate();
    return true;
  }

  /**
   * Call this after sending a CANCEL. According to RFC 3261 section 9.1, the final response must
   * then arrive within 64 * T1.
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
