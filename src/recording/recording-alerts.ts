// Says on NATS that recordings of an account wait for the store, or were given up. People who sell
// recordings want to know it before they look for one.

import type { Logger } from '../lib/logger.ts';
import type { KeeperOutcome } from './keeper/keeper.ts';

export type RecordingAlert = {
  readonly id: string;
  readonly type: 'alert';
  readonly time: string;
  readonly accountId: string;
  readonly data: {
    /** `recordings-waiting`: the store fails, and the gateway keeps trying. */
    readonly alert: 'recordings-waiting' | 'recording-failed';
    readonly callId: string;
    readonly reason: string;
  };
};

/** A store that fails twice in a row has a problem; once may be a restart. */
const attemptsBeforeAlert = 3;
/** Bounds the accounts that get an alert in one outage. The metrics count all recordings. */
const maxAccounts = 1_000;

export class RecordingAlerts {
  readonly #publish: (alert: RecordingAlert) => Promise<void>;
  readonly #now: () => Date;
  readonly #logger: Logger;
  /** The accounts that have been told since the store last worked. */
  readonly #told = new Set<string>();

  constructor(publish: (alert: RecordingAlert) => Promise<void>, now: () => Date, logger: Logger) {
    this.#publish = publish;
    this.#now = now;
    this.#logger = logger;
  }

  note(outcome: KeeperOutcome): void {
    const { accountId } = outcome;
    if (outcome.kind === 'stored') {
      this.#told.clear();
      return;
    }
    if (outcome.kind === 'waiting') {
      const isTold = this.#told.has(accountId) || this.#told.size >= maxAccounts;
      if (outcome.attempts < attemptsBeforeAlert || isTold) return;
      this.#told.add(accountId);
    }
    const alert = outcome.kind === 'waiting' ? 'recordings-waiting' : 'recording-failed';
    const { callId, reason } = outcome;
    this.#publish({
      ...{ id: `${alert} ${callId}`, type: 'alert', time: this.#now().toISOString(), accountId },
      data: { alert, callId, reason },
    }).catch((error: unknown) => {
      // The log and the metrics have it too.
      this.#logger.warn({ err: error, callId }, 'an alert about a recording was not published');
      this.#told.delete(accountId);
    });
  }
}
