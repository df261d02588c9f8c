// Takes accepted calls from the queue and starts them, each at most once ever: SQL's claim says who dials, however often
// and wherever a call id is delivered.

import { setMaxListeners } from 'node:events';
import { progressOfAccepted, queuedFact } from '../calls/call-facts.ts';
import { endOfExpiry } from '../calls/call-outcome.ts';
import type { CallRegistry } from '../calls/call-registry.ts';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallLedger, Clock } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import type { EndRecorder } from './end-recorder.ts';
import type { TrunkPacers } from './trunk-pacers.ts';

export type DialerPorts = {
  readonly ledger: CallLedger & {
    /** Accepted, not claimed, not ended, accepted before the given instant, of other trunks; oldest first. */
    waiting(
      acceptedBefore: Date,
      limit: number,
      exceptTrunks: readonly string[],
    ): Promise<readonly CallId[]>;
    /** Accepted, not claimed, not ended, and not to be dialled any more. */
    expired(limit: number): Promise<readonly CallId[]>;
  };
  readonly registry: CallRegistry;
  /** Trunks with limits: their calls wait in SQL. */
  readonly pacers: Pick<TrunkPacers, 'isPaced' | 'wake' | 'look' | 'has'>;
  readonly ends: Pick<EndRecorder, 'record' | 'recordQueued'>;
  /** False: no INVITE may leave, e.g. because the lease ran out; what is taken now would fail instead of being dialled by others. */
  readonly mayPlace: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
};

export type DialerOptions = { readonly ownerId: string };

/** A call as the queue names it. `restatesQueued`: another process accepted it, which may have died before it published that. */
export type Delivery = { readonly trunk?: string | undefined; readonly restatesQueued: boolean };

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

  /** Resolves when the call is under way, waits for its trunk, or needs nothing more; throws when it should be delivered again. */
  async dial(callId: CallId, { trunk, restatesQueued }: Delivery): Promise<void> {
    const { pacers, registry, mayPlace } = this.#ports;
    if (pacers.isPaced(trunk)) return pacers.wake(trunk);
    const signal = this.#stopped.signal;
    const giveBack = await registry.reserve(signal);
    try {
      signal.throwIfAborted();
      if (!mayPlace()) throw new Error('no INVITE may leave now');
      await this.#take(callId, restatesQueued);
    } finally {
      giveBack();
    }
  }

  /**
   * Ends what has waited in SQL for too long, room for it or not, and dials what waits for so long that its message must
   * have been lost. Bounded a round; the next round takes the rest.
   */
  async sweep(): Promise<void> {
    const { ledger, registry, pacers, mayPlace } = this.#ports;
    if (!mayPlace()) return;
    const expired = await ledger.expired(expiryBatch);
    await Promise.all(expired.map((callId) => this.#take(callId, true)));
    const paced = await pacers.look();
    for (const callId of await ledger.waiting(this.#ago(sweepAgeMs), sweepBatch, paced)) {
      if (this.#stopped.signal.aborted || !registry.hasRoom || !mayPlace()) return;
      await this.#take(callId, true);
    }
  }

  /** No new calls from here on. */
  stop(): void {
    this.#stopped.abort(new Error('the dialer is stopping'));
  }

  /** True: the call, which is this process's, has waited too long, and has its end. */
  async endIfExpired(call: AcceptedCall): Promise<boolean> {
    const { ends, clock } = this.#ports;
    if (call.acceptedAt > this.#ago(call.request.queueTimeoutMs)) return false;
    // Whoever accepted it may have died before `queued` was published.
    await ends.record(progressOfAccepted(call), endOfExpiry(clock.now()), [queuedFact(call)]);
    return true;
  }

  async #take(callId: CallId, restatesQueued: boolean): Promise<void> {
    const { ledger, registry, pacers } = this.#ports;
    // A claim that failed may be tried again, but not where a trunk's clock has handed the call out since.
    if (registry.has(callId) || pacers.has(callId)) return;
    const call = await ledger.claimForDialing(callId, this.#options.ownerId);
    if (call === undefined || (await this.endIfExpired(call))) return;
    registry.start(call, { restatesQueued });
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
