// This process's lease. We renew it periodically, and never treat it as held for longer than the
// database granted. After being paused or cut off, a process doesn't store any events until the
// database confirms that the process still owns its calls. If another process has taken over those
// calls in the meantime, the old owner never stores an event again.

import { untilBeat } from '../lib/beat.ts';
import { inBackground } from '../lib/in-background.ts';
import { type LeaseTimes, leaseTimes } from '../lib/lease-times.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';

export type LeasePorts = {
  /**
   * Renews the lease in the database. Resolves to false if this process has been marked lost, and
   * rejects if the database is unreachable.
   */
  readonly renew: (how: { readonly afterFailure: boolean }) => Promise<boolean>;
  /** Monotonic clock that keeps running while the process is stopped (CLOCK_MONOTONIC). */
  readonly nowMs: () => number;
  readonly onLost: () => void;
  readonly logger: Logger;
};

/**
 * We only claim a call while at least an eighth of the lease is left (usually one second of eight),
 * because the call's INVITE must be sent while we still hold the lease.
 */
const takeMarginsPerLease = 8;

type State = 'running' | 'lost' | 'stopped';

export class Lease {
  readonly #ports: LeasePorts;
  readonly #times: LeaseTimes;
  #state: State = 'running';
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #timer: NodeJS.Timeout | undefined;
  #waiters: { resolve(): void; reject(error: Error): void }[] = [];

  /** `leaseMs` is the longest outage of the database that doesn't cost this process its lease. */
  constructor(ports: LeasePorts, leaseMs: number) {
    this.#ports = ports;
    this.#times = leaseTimes(leaseMs);
  }

  /**
   * Starts renewing. We obtained the first lease with the registration that was requested at
   * `registeredAtMs`.
   */
  start(registeredAtMs: number): void {
    this.#heldUntilMs = registeredAtMs + this.#times.grantedMs;
    this.#schedule();
  }

  get isHeld(): boolean {
    return this.#isHeldFor(0);
  }

  /** How long a renewal lasts, in milliseconds. */
  get durationMs(): number {
    return this.#times.grantedMs;
  }

  /** Milliseconds since we asked for the renewal that the lease dates from. */
  get ageMs(): number {
    return this.#ports.nowMs() + this.#times.grantedMs - this.#heldUntilMs;
  }

  /**
   * True if enough of the lease is left to claim a call and send its INVITE. If we claimed a call
   * at the last moment, it would fail.
   */
  get mayTake(): boolean {
    return this.#isHeldFor(this.#times.guaranteedMs / takeMarginsPerLease);
  }

  /**
   * Waits until we hold the lease again. Rejects if we've lost it for good.
   * @returns undefined if we hold the lease right now, so there's nothing to wait for
   */
  untilHeld(): Promise<void> | undefined {
    if (this.isHeld) return undefined;
    if (this.#state !== 'running') return Promise.reject(new Error(`the lease is ${this.#state}`));
    // We don't need to limit the number of waiters, because each of them has events to store, and
    // the publisher limits those.
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
  }

  /** Renews immediately, e.g. to store that this process is draining. */
  async renewNow(): Promise<void> {
    await this.#renew();
  }

  /**
   * Gives up the lease for good, although no other process has taken over yet.
   * @returns false if the lease is still held, so there's no reason to give it up
   */
  yield(): boolean {
    if (this.isHeld) return false;
    if (this.#state === 'running') this.#lose();
    return true;
  }

  stop(): void {
    if (this.#state === 'running') this.#state = 'stopped';
    clearTimeout(this.#timer);
    this.#settle(new Error('the lease is stopped'));
  }

  #schedule(): void {
    if (this.#state !== 'running') return;
    const { retryEveryMs, renewEveryMs } = this.#times;
    const everyMs = this.#isFailing ? retryEveryMs : renewEveryMs;
    this.#timer = setTimeout(
      () => inBackground(this.#renewAndSchedule(), this.#ports.logger, 'renewing the lease'),
      untilBeat(everyMs, this.#ports.nowMs()),
    );
    this.#timer.unref();
  }

  async #renewAndSchedule(): Promise<void> {
    try {
      // A renewal that hangs mustn't hold up the next one.
      const hasAnswer = await within(this.#renew(), this.#times.attemptTimeoutMs);
      if (hasAnswer === undefined) this.#isFailing = true;
    } finally {
      this.#schedule();
    }
  }

  #isHeldFor(ms: number): boolean {
    return this.#state !== 'lost' && this.#ports.nowMs() + ms < this.#heldUntilMs;
  }

  /** @returns true when the database has answered, or the attempt has failed */
  async #renew(): Promise<true> {
    // The database starts the lease at this instant or later.
    const askedAtMs = this.#ports.nowMs();
    try {
      const isRenewed = await this.#ports.renew({ afterFailure: this.#isFailing });
      this.#isFailing = false;
      if (this.#state !== 'running') return true;
      if (isRenewed) {
        // The response to a later renewal may have arrived first.
        this.#heldUntilMs = Math.max(this.#heldUntilMs, askedAtMs + this.#times.grantedMs);
        this.#settle();
      } else this.#lose();
    } catch (error) {
      this.#isFailing = true;
      this.#ports.logger.warn({ err: error }, 'the lease of this node was not renewed');
    }
    return true;
  }

  #lose(): void {
    this.#state = 'lost';
    this.#settle(new Error('the lease is lost: another node ends the calls of this one'));
    this.#ports.onLost();
  }

  #settle(failure?: Error): void {
    for (const waiter of this.#waiters.splice(0)) {
      if (failure === undefined) waiter.resolve();
      else waiter.reject(failure);
    }
  }
}
