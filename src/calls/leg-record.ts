// Keeps in SQL how a call's INVITE can be cancelled. Nobody waits for it, but until it is there no other process could end the
// call if this one died: so it is tried again while SQL is away. Only the newest leg of a call is worth it.

import type { CallId } from './contract/identity.ts';
import type { StoredLeg } from './contract/stored-leg.ts';
import type { CallLedger } from './ports.ts';

/** Until the phone has stopped ringing by itself, or SQL is back, whichever is sooner. */
const mostTries = 120;
const retryMs = 500;

export class LegRecord {
  readonly #ledger: Pick<CallLedger, 'recordInvite'>;
  readonly #onError: (callId: CallId, error: unknown) => void;
  /** Those that are not stored: as many as calls have an INVITE under way. */
  readonly #newest = new Map<CallId, StoredLeg>();

  constructor(
    ledger: Pick<CallLedger, 'recordInvite'>,
    onError: (callId: CallId, error: unknown) => void,
  ) {
    this.#ledger = ledger;
    this.#onError = onError;
  }

  /** Returns at once. */
  keep(callId: CallId, leg: StoredLeg): void {
    this.#newest.set(callId, leg);
    void this.#tryToKeep(callId, leg).finally(() => {
      if (this.#newest.get(callId) === leg) this.#newest.delete(callId);
    });
  }

  async #tryToKeep(callId: CallId, leg: StoredLeg): Promise<void> {
    for (let tries = 1; tries <= mostTries && this.#newest.get(callId) === leg; tries += 1) {
      try {
        await this.#ledger.recordInvite(callId, leg);
        return;
      } catch (error) {
        if (tries === 1 || tries === mostTries) this.#onError(callId, error);
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
      }
    }
  }
}
