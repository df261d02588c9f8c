// The lease of this process: renewed again and again, and not held for a moment longer than the database granted it. A
// process that was paused, or cut off, states nothing until the database says that it is still in the game; where
// another one has taken over, it never states anything again.

import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';

export type LeasePorts = {
  /** False: this process was marked lost. Throws while the database is unreachable. */
  readonly renew: (how: { readonly afterFailure: boolean }) => Promise<boolean>;
  /** Monotonic, and it goes on while the process is stopped (CLOCK_MONOTONIC). */
  readonly nowMs: () => number;
  readonly onLost: () => void;
  readonly logger: Logger;
};

/** The part of a lease that must be left when a call is taken, so that its INVITE leaves while it is held: a second of the usual eight. */
const takesInLease = 8;
const renewalsInLease = 4;
/** After one that failed: who could not renew for nearly a lease must not wait for the next renewal when the database is back. */
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

  /** The first one came with the registration, which was asked for at that instant. */
  start(registeredAtMs: number): void {
    this.#heldUntilMs = registeredAtMs + this.#leaseMs;
    this.#schedule();
  }

  get isHeld(): boolean {
    return this.#isHeldFor(0);
  }

  /** Held for long enough to take a call and send its INVITE: one that is taken in the last moment would fail. */
  get mayTake(): boolean {
    return this.#isHeldFor(this.#leaseMs / takesInLease);
  }

  /** Undefined: it is held now. Resolves when it is held again; rejects when it never will be. */
  untilHeld(): Promise<void> | undefined {
    if (this.isHeld) return undefined;
    if (this.#state !== 'running') return Promise.reject(new Error(`the lease is ${this.#state}`));
    // Bounded by those who wait: events, of which the publisher bounds the number.
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
  }

  /** At once, e.g. to say that this process is draining. */
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
      // One that hangs, e.g. for want of a connection, must not keep the next from being made.
      await within(this.#renew(), this.#leaseMs / renewalsInLease);
    } finally {
      this.#schedule();
    }
  }

  #isHeldFor(ms: number): boolean {
    return this.#state !== 'lost' && this.#ports.nowMs() + ms < this.#heldUntilMs;
  }

  async #renew(): Promise<void> {
    // The database counts from when it was asked, at the earliest.
    const askedAtMs = this.#ports.nowMs();
    try {
      const isOurs = await this.#ports.renew({ afterFailure: this.#isFailing });
      this.#isFailing = false;
      if (this.#state !== 'running') return;
      if (isOurs) {
        // A later one may have been answered before.
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
