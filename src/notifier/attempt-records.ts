// Stores the results of attempts, and the next step of their queues. The results of many calls are
// stored together, because one statement for each would be a quarter of a call's SQL cost. If the
// process is killed before it stores a result, the notification is sent again, as after a kill in
// the middle of an attempt. Receivers recognise it by its id.

import { setTimeout as pause } from 'node:timers/promises';
import { isRefusedData } from '../store/sql-errors.ts';
import { type CallQueue, settlementOf } from './call-queue.ts';
import type { CallQueueStep } from './delivery-rules.ts';
import type { AttemptRecord, NotificationStore, Settlement } from './notification-store.ts';

/** At most ten statements a second. An attempt over the internet itself takes almost as long. */
const recordEveryMs = 100;
/**
 * Delay before the outcome of an attempt is stored again after a database error. The retries go on
 * until the lease ends, because then other processes may send.
 */
const settleRetryMs = 500;

type Deps = { readonly store: Pick<NotificationStore, 'settle'>; readonly now: () => Date };

export class AttemptRecords {
  readonly #deps: Deps;
  /** The running pause. All attempts that arrive before it ends are stored by one statement. */
  #pause: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Stores an attempt soon, while the queue's next notification is already being sent. */
  storeSoon(queue: CallQueue, attempt: AttemptRecord): void {
    const { callId, day, leasedUntil } = queue;
    const stored = this.#pauseEnd().then(() =>
      this.#settleWithRetries(queue, { callId, day, leasedUntil, attempt, queue: 'keep' }),
    );
    queue.recorded = Promise.all([queue.recorded, stored]);
    // `settle` awaits this promise, and throws its error, before it releases the queue.
    queue.recorded.catch(() => {});
  }

  /** Waits until the next pause ends. Returns at once if a notification is added to the queue. */
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
   * Stores an attempt and the queue's next step.
   *
   * @returns false if the queue was released
   */
  async settle(
    queue: CallQueue,
    attempt: AttemptRecord | undefined,
    next: CallQueueStep,
  ): Promise<boolean> {
    // Captures the lease at the time of the decision. A notification that is added later changes
    // the lease, and so prevents the release of the queue.
    const { callId, day, leasedUntil } = queue;
    try {
      await queue.recorded;
    } catch (error) {
      // The queue is lost when its lease runs out, but the result of this attempt can still be
      // stored.
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
    // The queue was not released although it should have been, so a notification was added to it.
    if (next.kind !== 'send' && !isReleased) queue.isStale = true;
    return !isReleased;
  }

  /**
   * Retries while the lease is held, including its renewals.
   *
   * @returns true if the queue was released
   */
  async #settleWithRetries(queue: CallQueue, settlement: Settlement): Promise<boolean> {
    for (;;) {
      try {
        return await this.#deps.store.settle(settlement);
      } catch (error) {
        const isOver = this.#deps.now().getTime() + settleRetryMs > queue.leasedUntil;
        // The database refuses the same data every time, and the lease might be renewed for ever.
        if (isOver || isRefusedData(error)) throw error;
        await pause(settleRetryMs);
      }
    }
  }
}
