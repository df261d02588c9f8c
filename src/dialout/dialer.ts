// Takes accepted calls from the queue and starts them, each at most once ever: SQL's claim says who dials, however often
// and wherever a call id is delivered.

import { setMaxListeners } from 'node:events';
import { progressOfAccepted, queuedFact } from '../calls/call-facts.ts';
import { endOfExpiry } from '../calls/call-outcome.ts';
import type { CallRegistry } from '../calls/call-registry.ts';
import type { CallId } from '../calls/call-types.ts';
import type { CallLedger, Clock } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import type { EndRecorder } from './end-recorder.ts';

export type DialerPorts = {
  readonly ledger: CallLedger & {
    /** Accepted, not claimed, not ended, accepted before the given instant; oldest first. */
    waiting(acceptedBefore: Date, limit: number): Promise<readonly CallId[]>;
  };
  readonly registry: CallRegistry;
  readonly ends: EndRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type DialerOptions = {
  readonly ownerId: string;
  readonly queueTimeoutMs: number;
};

export class Dialer {
  readonly #ports: DialerPorts;
  readonly #options: DialerOptions;
  readonly #stopped = new AbortController();

  constructor(ports: DialerPorts, options: DialerOptions) {
    this.#ports = ports;
    this.#options = options;
    // Every delivery that waits for room listens.
    setMaxListeners(0, this.#stopped.signal);
  }

  /**
   * Resolves when the call is under way or needs nothing more; throws when it should be delivered again.
   * `restatesQueued`: it was accepted by another process, which may have died before it published that.
   */
  async dial(callId: CallId, how: { readonly restatesQueued: boolean }): Promise<void> {
    const signal = this.#stopped.signal;
    await this.#ports.registry.room(signal);
    signal.throwIfAborted();
    await this.#take(callId, how);
  }

  /**
   * Ends what has waited in SQL for too long, room for it or not, and dials what waits for so long that its message must
   * have been lost. Bounded a round; the next round takes the rest.
   */
  async sweep(): Promise<void> {
    const { ledger, registry } = this.#ports;
    const expired = await ledger.waiting(this.#ago(this.#options.queueTimeoutMs), expiryBatch);
    await Promise.all(expired.map((callId) => this.#take(callId, { restatesQueued: true })));
    for (const callId of await ledger.waiting(this.#ago(sweepAgeMs), sweepBatch)) {
      if (this.#stopped.signal.aborted || !registry.hasRoom) return;
      await this.#take(callId, { restatesQueued: true });
    }
  }

  /** No new calls from here on. */
  stop(): void {
    this.#stopped.abort(new Error('the dialer is stopping'));
  }

  async #take(callId: CallId, how: { readonly restatesQueued: boolean }): Promise<void> {
    const { ledger, registry, ends, clock } = this.#ports;
    const call = await ledger.claimForDialing(callId, this.#options.ownerId);
    if (call === undefined) return;
    if (call.acceptedAt < this.#ago(this.#options.queueTimeoutMs)) {
      // Whoever accepted it may have died before `queued` was published.
      const missing = [queuedFact(call)];
      await ends.record(progressOfAccepted(call), endOfExpiry(clock.now()), missing);
    } else registry.start(call, how);
  }

  #ago(ms: number): Date {
    return new Date(this.#ports.clock.now().getTime() - ms);
  }
}

/** A message of the queue arrives in milliseconds; after this long it will not come by itself. */
const sweepAgeMs = 5_000;
const sweepBatch = 100;
/** They cost two statements, which they share. */
const expiryBatch = 1_000;
