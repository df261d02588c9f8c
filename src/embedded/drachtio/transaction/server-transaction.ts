// Server transactions, per RFC 3261 section 17.2, with RFC 6026's Accepted state. There's one
// function per state, and a single timer per transaction. We keep the text of the last response, so
// that when a request is retransmitted, we only need to send the text and don't have to format it
// again.

import { Transaction, type TransactionDeps } from './transaction-timer.ts';

export type ServerTransactionDeps = TransactionDeps & {
  readonly send: (text: string) => void;
  /** INVITE only: the caller hasn't acknowledged the 2xx within 64 * T1. */
  readonly onAckTimeout: () => void;
  /** The application hasn't responded in time. By now, the caller has long given up. */
  readonly onAnswerTimeout: () => void;
};

type InviteServerState = 'proceeding' | 'accepted' | 'completed' | 'confirmed';

export class InviteServerTransaction extends Transaction<InviteServerState, ServerTransactionDeps> {
  #lastResponse: string | undefined;

  constructor(deps: ServerTransactionDeps) {
    super(deps, 'proceeding');
    this.timer.after(deps.timers.inviteAnswerMs, () => deps.onAnswerTimeout());
  }

  /** Handles a retransmitted INVITE. */
  receiveRetransmit(): void {
    switch (this.state) {
      case 'proceeding':
      case 'completed':
        if (this.#lastResponse !== undefined) this.deps.send(this.#lastResponse);
        return;
      case 'accepted':
      case 'confirmed':
      case 'terminated':
        // Ignore the INVITE (RFC 6026 section 7.1), because the 2xx is retransmitted on its own
        // schedule.
        return;
    }
  }

  respond(status: number, text: string): boolean {
    if (this.state !== 'proceeding') return false;
    this.#lastResponse = text;
    if (status >= 300) this.#complete();
    else if (status >= 200) this.#accept();
    this.deps.send(text);
    return true;
  }

  /** Handles the ACK for a failure or a 2xx. Returns false if we weren't waiting for an ACK. */
  acknowledge(): boolean {
    if (this.state === 'completed') {
      this.enter('confirmed');
      if (this.deps.reliable) this.terminate();
      else this.timer.after(this.deps.timers.t4Ms, () => this.terminate());
      return true;
    }
    if (this.state !== 'accepted') return false;
    this.enter('confirmed');
    this.timer.afterLife(() => this.terminate());
    return true;
  }

  #accept(): void {
    this.enter('accepted');
    this.#startRetransmits(() => {
      this.deps.onAckTimeout();
      this.terminate();
    });
  }

  #complete(): void {
    this.enter('completed');
    this.#startRetransmits(() => this.terminate());
  }

  #startRetransmits(onEnd: () => void): void {
    const { timers, reliable, send } = this.deps;
    const sendAgain = (): void => {
      if (this.#lastResponse !== undefined) send(this.#lastResponse);
    };
    this.timer.retransmit({ send: sendAgain, maxIntervalMs: timers.t2Ms, reliable, onEnd });
  }
}

type NonInviteServerState = 'trying' | 'completed';

export class NonInviteServerTransaction extends Transaction<
  NonInviteServerState,
  ServerTransactionDeps
> {
  #lastResponse: string | undefined;

  constructor(deps: ServerTransactionDeps) {
    super(deps, 'trying');
    this.timer.afterLife(() => {
      deps.onAnswerTimeout();
      this.terminate();
    });
  }

  receiveRetransmit(): void {
    if (this.state !== 'terminated' && this.#lastResponse !== undefined) {
      this.deps.send(this.#lastResponse);
    }
  }

  respond(status: number, text: string): boolean {
    if (this.state !== 'trying') return false;
    this.#lastResponse = text;
    this.deps.send(text);
    if (status < 200) return true;
    this.enter('completed');
    if (this.deps.reliable) this.terminate();
    else this.timer.afterLife(() => this.terminate());
    return true;
  }
}
