// Takes accepted calls from the queue and starts them, each at most once ever: SQL's claim says who dials, however often
// and wherever a call id is delivered.

import { progressOfAccepted } from '../calls/call-facts.ts';
import { endOfExpiry } from '../calls/call-outcome.ts';
import type { CallRegistry } from '../calls/call-registry.ts';
import type { AcceptedCall, CallId } from '../calls/call-types.ts';
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
  }

  /** Resolves when the call is under way or needs nothing more; throws when it should be delivered again. */
  async dial(callId: CallId): Promise<void> {
    const { ledger, registry } = this.#ports;
    const signal = this.#stopped.signal;
    await registry.room(signal);
    signal.throwIfAborted();
    const call = await ledger.claimForDialing(callId, this.#options.ownerId);
    if (call === undefined) return;
    if (this.#hasExpired(call))
      await this.#ports.ends.record(progressOfAccepted(call), endOfExpiry(this.#ports.clock.now()));
    else registry.start(call);
  }

  /**
   * Dials what waits in SQL for so long that its message must have been lost.
   * Bounded a round; the next round takes the rest.
   */
  async sweep(): Promise<void> {
    const before = new Date(this.#ports.clock.now().getTime() - sweepAgeMs);
    for (const callId of await this.#ports.ledger.waiting(before, sweepBatch)) {
      if (this.#stopped.signal.aborted) return;
      await this.dial(callId);
    }
  }

  /** No new calls from here on. */
  stop(): void {
    this.#stopped.abort(new Error('the dialer is stopping'));
  }

  #hasExpired(call: AcceptedCall): boolean {
    return (
      this.#ports.clock.now().getTime() - call.acceptedAt.getTime() > this.#options.queueTimeoutMs
    );
  }
}

/** A message of the queue arrives in milliseconds; after this long it will not come by itself. */
const sweepAgeMs = 5_000;
const sweepBatch = 100;
