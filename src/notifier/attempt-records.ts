// Stores what became of attempts, and what their queues do next: in groups, because a statement for each would be a quarter of
// what a call costs in SQL. A process that is killed before that has them sent again, as one that is killed in mid-attempt
// does; receivers know them by their id.

import { setTimeout as pause } from 'node:timers/promises';
import { isRefusedData } from '../store/sql-errors.ts';
import { type CallQueue, settlementOf } from './call-queue.ts';
import type { CallQueueStep } from './delivery-rules.ts';
import type { AttemptRecord, NotificationStore, Settlement } from './notification-store.ts';

/** Ten statements a second at most, and not much more than an attempt itself takes on the internet. */
const recordEveryMs = 100;
/** The database did not take the outcome of an attempt: it is asked again until the lease is over, when others may send. */
const settleRetryMs = 500;

type Deps = { readonly store: Pick<NotificationStore, 'settle'>; readonly now: () => Date };

export class AttemptRecords {
  readonly #deps: Deps;
  /** While it runs; ends for all attempts that come before its end: one statement stores them. */
  #pause: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Stores an attempt while the queue's next notification is sent. */
  soon(queue: CallQueue, attempt: AttemptRecord): void {
    const { callId, day, leasedUntil } = queue;
    const stored = this.#pauseEnd().then(() =>
      this.#settleWithRetries(queue, { callId, day, leasedUntil, attempt, queue: 'keep' }),
    );
    queue.recorded = Promise.all([queue.recorded, stored]);
    // Waited for, and thrown, before the queue is let go.
    queue.recorded.catch(() => {});
  }

  /** Until attempts are stored; ends at once when something is added to the queue. */
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

  /** Records an attempt and what the queue does next. False: it was let go. */
  async settle(
    queue: CallQueue,
    attempt: AttemptRecord | undefined,
    next: CallQueueStep,
  ): Promise<boolean> {
    // As it was when `next` was decided: what is added from here on keeps the queue from being let go.
    const { callId, day, leasedUntil } = queue;
    try {
      await queue.recorded;
    } catch (error) {
      // The queue goes with its lease; what is known of this attempt need not.
      if (attempt !== undefined) {
        const settlement = { callId, day, leasedUntil, attempt, queue: 'keep' } as const;
        await this.#settleWithRetries(queue, settlement).catch(() => {});
      }
      throw error;
    }
    const letGo = await this.#settleWithRetries(queue, {
      ...{ callId, day, leasedUntil },
      ...(attempt === undefined ? {} : { attempt }),
      ...(queue.goneAt === undefined ? {} : { goneAt: queue.goneAt }),
      queue: settlementOf(next),
    });
    // Not let go although it was to be: something was added to it.
    if (next.kind !== 'send' && !letGo) queue.isStale = true;
    return !letGo;
  }

  /** True: the queue was let go. Tried as long as the lease is held, its renewals included. */
  async #settleWithRetries(queue: CallQueue, settlement: Settlement): Promise<boolean> {
    for (;;) {
      try {
        return await this.#deps.store.settle(settlement);
      } catch (error) {
        const isOver = this.#deps.now().getTime() + settleRetryMs > queue.leasedUntil;
        // The same data is refused each time, and the lease might be renewed for ever.
        if (isOver || isRefusedData(error)) throw error;
        await pause(settleRetryMs);
      }
    }
  }
}
