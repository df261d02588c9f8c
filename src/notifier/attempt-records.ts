// Stores attempt results and updates the queues. We store many calls' results in one statement,
// because separate statements would account for a quarter of a call's SQL cost. If the process is
// killed before it has stored a result, the notification is sent again, but receivers can recognise
// the repetition by its `eventId`.

import { setTimeout as pause } from 'node:timers/promises';
import { isRefusedData } from '../store/sql-errors.ts';
import { type CallQueue, settlementOf } from './call-queue.ts';
import type { CallQueueStep } from './delivery-rules.ts';
import type { AttemptRecord, NotificationStore, Settlement } from './notification-store.ts';

/** Limits the process to ten statements per second. An attempt usually takes almost as long. */
const recordEveryMs = 100;
/**
 * Delay between retries after a database error. We stop retrying when the lease ends, because other
 * processes may send from then on.
 */
const settleRetryMs = 500;

type Deps = { readonly store: Pick<NotificationStore, 'settle'>; readonly now: () => Date };

export class AttemptRecords {
  readonly #deps: Deps;
  /** The current pause, if any. One statement stores all attempts that finish during it. */
  #pause: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Stores an attempt after the pause. In the meantime, we may send the queue's next notification.
   */
  storeSoon(queue: CallQueue, attempt: AttemptRecord): void {
    const { callId, day, leasedUntil } = queue;
    const stored = this.#pauseEnd().then(() =>
      this.#settleWithRetries(queue, { callId, day, leasedUntil, attempt, queue: 'keep' }),
    );
    queue.recorded = Promise.all([queue.recorded, stored]);
    // `settle` awaits this promise, and throws its error, before it releases the queue.
    queue.recorded.catch(() => {});
  }

  /** Waits until the pause ends or a notification is added to the queue. */
  async pauseForMore(queue: CallQueue): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      queue.onMore = resolve;
      this.#pauseEnd().then(resolve, reject);
    });
    delete queue.onMore;
  }

  #pauseEnd(): Promise<void> {
    this.#pause ??= pause(recordEveryMs).then(() => {
      this.#pause = undefined;
    });
    return this.#pause;
  }

  /**
   * Stores an attempt, if there has been one, and keeps or releases the queue.
   *
   * @returns true if this process still has the queue
   */
  async settle(
    queue: CallQueue,
    attempt: AttemptRecord | undefined,
    next: CallQueueStep,
  ): Promise<boolean> {
    // Note that this is the lease as it was when `next` was decided. Adding a notification changes
    // the lease, so the statement can't release a queue that has grown since.
    const { callId, day, leasedUntil } = queue;
    try {
      await queue.recorded;
    } catch (error) {
      // Although we give up the queue and let its lease run out, we can still store this attempt's
      // result.
      if (attempt !== undefined) {
        const settlement = { callId, day, leasedUntil, attempt, queue: 'keep' } as const;
        await this.#settleWithRetries(queue, settlement).catch(() => {});
      }
      throw error;
    }
    const isReleased = await this.#settleWithRetries(queue, {
      ...{ callId, day, leasedUntil },
      ...(attempt === undefined ? {} : { attempt }),
      ...(queue.goneAt === undefined ? {} : { goneAt: queue.goneAt }),
      queue: settlementOf(next),
    });
    // The statement didn't release the queue, so a notification must have been added.
    if (next.kind !== 'send' && !isReleased) queue.isStale = true;
    return !isReleased;
  }

  /**
   * Retries until the lease is about to end. The lease may be renewed in the meantime.
   *
   * @returns true if the queue was released
   */
  async #settleWithRetries(queue: CallQueue, settlement: Settlement): Promise<boolean> {
    for (;;) {
      try {
        return await this.#deps.store.settle(settlement);
      } catch (error) {
        const isLeaseEnding = this.#deps.now().getTime() + settleRetryMs > queue.leasedUntil;
        // If the database rejects the data, retries never succeed and we'd renew the lease forever.
        if (isLeaseEnding || isRefusedData(error)) throw error;
        await pause(settleRetryMs);
      }
    }
  }
}
