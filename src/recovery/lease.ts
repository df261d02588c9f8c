// The lease of this process. It is renewed periodically, and never counts as held for longer than
// the database granted. A process that was paused or cut off stores no events until the database
// confirms that it still owns its calls. If another process has taken over its calls, it never
// stores an event again.

import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';

export type LeasePorts = {
  /**
   * Renews the lease in SQL. Resolves to false if this process was marked lost. Rejects while the
   * database is unreachable.
   */
  readonly renew: (how: { readonly afterFailure: boolean }) => Promise<boolean>;
  /** Monotonic clock that keeps running while the process is stopped (CLOCK_MONOTONIC). */
  readonly nowMs: () => number;
  readonly onLost: () => void;
  readonly logger: Logger;
};

/**
 * When a call is taken, at least an eighth of the lease must be left, so that its INVITE leaves
 * while the lease is held. That is one second of the usual eight.
 */
const takesInLease = 8;
const renewalsInLease = 4;
/**
 * Renewal attempts per lease after a failure. When the database is back, a process that could not
 * renew for nearly a whole lease must not wait long.
 */
const triesInLease = 16;

type State = 'running' | 'lost' | 'stopped';

export class Lease {
  readonly #ports: LeasePorts;
  readonly #leaseMs: number;
  #state: State = 'running';
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #timer: NodeJS.Timeout | undefined;
  #waiters: { resolve(): void; reject(error: Error): void }[] = [];

  constructor(ports: LeasePorts, leaseMs: number) {
    this.#ports = ports;
    this.#leaseMs = leaseMs;
  }

  /** Starts renewing. The registration, requested at `registeredAtMs`, granted the first lease. */
  start(registeredAtMs: number): void {
    this.#heldUntilMs = registeredAtMs + this.#leaseMs;
    this.#schedule();
  }

  get isHeld(): boolean {
    return this.#isHeldFor(0);
  }

  /**
   * True if enough of the lease is left to take a call and send its INVITE. A call taken at the
   * last moment would fail.
   */
  get mayTake(): boolean {
    return this.#isHeldFor(this.#leaseMs / takesInLease);
  }

  /**
   * Waits for the lease. Resolves when it is held again. Rejects if it never will be.
   * @returns undefined if the lease is held now, so that the caller need not wait
   */
  untilHeld(): Promise<void> | undefined {
    if (this.isHeld) return undefined;
    if (this.#state !== 'running') return Promise.reject(new Error(`the lease is ${this.#state}`));
    // The number of waiters is bounded: each waiter holds events, and the publisher bounds its
    // events.
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
  }

  /** Renews immediately, e.g. to store that this process is draining. */
  async renewNow(): Promise<void> {
    await this.#renew();
  }

  stop(): void {
    if (this.#state === 'running') this.#state = 'stopped';
    clearTimeout(this.#timer);
    this.#settle(new Error('the lease is stopped'));
  }

  #schedule(): void {
    if (this.#state !== 'running') return;
    this.#timer = setTimeout(
      () => inBackground(this.#renewAndSchedule(), this.#ports.logger, 'renewing the lease'),
      this.#leaseMs / (this.#isFailing ? triesInLease : renewalsInLease),
    );
    this.#timer.unref();
  }

  async #renewAndSchedule(): Promise<void> {
    try {
      // A renewal that hangs, e.g. because no connection is free, must not prevent the next one.
      await within(this.#renew(), this.#leaseMs / renewalsInLease);
    } finally {
      this.#schedule();
    }
  }

  #isHeldFor(ms: number): boolean {
    return this.#state !== 'lost' && this.#ports.nowMs() + ms < this.#heldUntilMs;
  }

  async #renew(): Promise<void> {
    // The database counts the lease from this instant or later.
    const askedAtMs = this.#ports.nowMs();
    try {
      const isRenewed = await this.#ports.renew({ afterFailure: this.#isFailing });
      this.#isFailing = false;
      if (this.#state !== 'running') return;
      if (isRenewed) {
        // A later renewal may have been answered first.
        this.#heldUntilMs = Math.max(this.#heldUntilMs, askedAtMs + this.#leaseMs);
        this.#settle();
      } else this.#lose();
    } catch (error) {
      this.#isFailing = true;
      this.#ports.logger.warn({ err: error }, 'the lease of this node was not renewed');
    }
  }

  #lose(): void {
    this.#state = 'lost';
    this.#settle(new Error('the lease is lost: another node ended the calls of this one'));
    this.#ports.onLost();
  }

  #settle(failure?: Error): void {
    for (const waiter of this.#waiters.splice(0)) {
      if (failure === undefined) waiter.resolve();
      else waiter.reject(failure);
    }
  }
}
