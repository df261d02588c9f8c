// Reliable provisional responses (RFC 3262) from the callee's point of view. We number the
// responses and retransmit each of them until its PRACK arrives, or until we give up after 64 * T1.

import {
  type EngineClock,
  type SipTimers,
  type TimerHandle,
  transactionLifeMs,
} from '../transaction/engine-timing.ts';
import type { Dialog } from './dialog.ts';

type Pending = {
  readonly dialog: Dialog | undefined;
  sequence: number;
  timer: TimerHandle | undefined;
};

export class ReliableProvisionals {
  readonly #clock: EngineClock;
  readonly #timers: SipTimers;
  readonly #pending = new Map<string, Pending>();

  constructor(clock: EngineClock, timers: SipTimers) {
    this.#clock = clock;
    this.#timers = timers;
  }

  nextSequence(transactionId: string): number {
    return (this.#pending.get(transactionId)?.sequence ?? 0) + 1;
  }

  start(
    transactionId: string,
    dialog: Dialog | undefined,
    reliableTransport: boolean,
    resend: () => void,
  ): void {
    const sequence = this.nextSequence(transactionId);
    this.stop(transactionId);
    const pending: Pending = { dialog, sequence, timer: undefined };
    this.#pending.set(transactionId, pending);
    if (!reliableTransport) this.#arm(pending, this.#timers.t1Ms, 0, resend);
  }

  /**
   * Handles `RAck: <rseq> <cseq> INVITE` by stopping the retransmissions. We keep the sequence
   * number, because the next response's number must follow it.
   */
  acknowledge(rack: string, dialog: Dialog): void {
    const sequence = Number(rack.split(' ', 1)[0]);
    for (const pending of this.#pending.values()) {
      if (pending.dialog !== dialog || pending.sequence !== sequence) continue;
      this.#clock.clearTimer(pending.timer);
      pending.timer = undefined;
    }
  }

  stop(transactionId: string): void {
    this.#clock.clearTimer(this.#pending.get(transactionId)?.timer);
    this.#pending.delete(transactionId);
  }

  #arm(pending: Pending, intervalMs: number, elapsedMs: number, resend: () => void): void {
    pending.timer = this.#clock.setTimer(() => {
      const totalMs = elapsedMs + intervalMs;
      if (totalMs >= transactionLifeMs(this.#timers)) return;
      resend();
      this.#arm(pending, intervalMs * 2, totalMs, resend);
    }, intervalMs);
  }
}
