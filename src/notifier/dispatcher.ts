// Delivers owed notifications. The dispatcher leases whole calls from the database. It sends the
// notifications of a call in order and one at a time, and serves many calls at once. Notifications
// that this process has just stored arrive with their lease and are sent without reading the
// database. The poll finds all others: retries, and notifications that another process left.
//
// A restart loses nothing. A lease that is not renewed runs out, and at the start this node gives
// back the leases of its previous process.

import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import type { CallOfDay } from '../store/days.ts';
import type { OwedNotification } from '../store/outbox/call-appends.ts';
import { AttemptRecords } from './attempt-records.ts';
import {
  type CallQueue,
  endpointOf,
  extendCallQueue,
  markGone,
  markStale,
  newCallQueue,
  pendingOf,
  recordInCallQueue,
  refreshCallQueue,
} from './call-queue.ts';
import { claimCallQueues, renewCallQueues } from './call-queue-claims.ts';
import type { LeasedCallQueue } from './call-queue-loading.ts';
import { attemptDelivery, type Delivery, type DeliveryDeps } from './delivery.ts';
import {
  type CallQueueStep,
  nextStep,
  type PendingNotification,
  receiverFailed,
} from './delivery-rules.ts';
import type { Endpoint } from './endpoint-store.ts';
import type { AttemptRecord, NotificationStore } from './notification-store.ts';
import { defaultGateLimits, type GateLimits, OriginGates, type Receiver } from './origin-gates.ts';
import { type Found, Poller } from './poller.ts';
import type { Recipient, RecipientLookup } from './recipients.ts';

/**
 * Long enough for three renewals. A longer lease would delay the notifications of a killed process.
 */
const leaseMs = 30_000;
const renewEveryMs = 10_000;
/**
 * No attempt starts if less than this is left of the lease, because the attempt could outlast it.
 */
const minLeaseLeftMs = 12_000;
const defaultPollMs = 1_000;
const claimLimit = 200;
/** Enough for several polls. Further calls are found by the poll for due notifications. */
const maxWanted = 2_000;
/**
 * Delay before a call is tried again that found no place at its receiver, or that this process may
 * not send for at the moment.
 */
const noRoomDelayMs = 2_000;

export type DispatcherDeps = DeliveryDeps & {
  readonly store: NotificationStore;
  readonly recipients: RecipientLookup;
  /**
   * False if other processes may have taken over this process's queues. The leases of its calls do
   * not show that: after a standstill, their remaining times are as the process left them.
   */
  readonly mayDeliver: () => boolean;
  readonly logger: Logger;
  /** Called after each attempt. `endpoint` is undefined if the call is gone. */
  readonly onAttempt?: (delivery: Delivery, endpoint: Endpoint | undefined) => void;
};

export type DispatcherOptions = {
  readonly pollMs?: number;
  /**
   * Pause between polls while no notification is owed. Omit it if other processes share the
   * database: then the poll never rests. Default: 0 (no rest).
   */
  readonly longestRestMs?: number;
  readonly gates?: GateLimits;
};

// The notifications of one call go through these states:
//
// owed      They are only in the database, without a lease. Next: `leased`, when the poll finds
//           them due or when they arrive with their lease.
// wanted    They are owed, and this process knows that something was added to the call. Next:
//           `leased`, with the next poll, which runs at once.
// leased    A queue is in memory, and its lease is renewed. The next step is decided. If the
//           database may know more, the queue is read again first. Next: `sending` if a
//           notification is due, else `released`.
// sending   The notification waits for its place at the receiver, and then one attempt is made.
//           Next: `leased`, with the result. Without a place or the right to send, the queue also
//           becomes `leased`, and is held back for two seconds.
// empty     The last notification was delivered. The queue waits for the pause after which attempts
//           are stored. Next: `leased` if something is added, else `released`.
// released  The lease is given back, with the time at which the next notification is due. Next:
//           `owed`, or the end if nothing is pending. If something was added meanwhile, the
//           database keeps the lease and the queue is `leased` again. A lease that is nearly over
//           is not given back; it runs out.
//
// After `stop` no attempt starts: each queue ends its current attempt and is released.

/** Notifications of one call that were just stored. */
export type StoredNotifications = CallOfDay & {
  /** Pending notifications, in order. */
  readonly owed: readonly OwedNotification[];
  readonly storedAt: Date;
  /** Set if the call's queue is leased to this process: when the lease runs out. */
  readonly leasedUntil?: Date;
  /** True if the statement that stored the notifications created the queue. */
  readonly isNewQueue: boolean;
  /**
   * True if the response to an earlier statement was lost. `owed` lacks what that statement stored.
   */
  readonly isRepeated: boolean;
};

export class NotificationDispatcher {
  readonly #deps: DispatcherDeps;
  readonly #poller: Poller;
  readonly #gates: OriginGates;
  readonly #records: AttemptRecords;
  readonly #queues = new Map<string, CallQueue>();
  readonly #running = new Set<Promise<void>>();
  /** Calls to look for at once: a notification was added to a queue that already existed. */
  readonly #wanted = new Map<string, Receiver>();
  #renewTimer: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(deps: DispatcherDeps, options: DispatcherOptions = {}) {
    this.#deps = deps;
    this.#poller = new Poller({
      everyMs: options.pollMs ?? defaultPollMs,
      longestRestMs: options.longestRestMs ?? 0,
      logger: deps.logger,
      look: (due) => (due ? this.#claimDue() : this.#claim(false)),
    });
    this.#gates = new OriginGates(options.gates ?? defaultGateLimits);
    this.#records = new AttemptRecords(deps);
  }

  async start(): Promise<void> {
    await this.takeOver();
    const renew = (): void =>
      inBackground(this.#renew(), this.#deps.logger, 'renewing leases of notifications');
    this.#renewTimer = setInterval(renew, renewEveryMs);
    this.#poller.soon(true);
  }

  /** Releases the queues of lost processes, so that any process may take them. */
  async takeOver(): Promise<void> {
    const released = await this.#deps.store.releaseLost();
    if (released === 0) return;
    this.#deps.logger.info({ calls: released }, 'took over notifications of a lost process');
    this.wake();
  }

  /**
   * Ends a rest of the poll. Call it when something is owed that this process's calls did not
   * store.
   */
  wake(): void {
    this.#poller.wake();
  }

  /**
   * Waits for attempts that are under way, at most `timeoutMs`. What is still owed stays in the
   * database for the next process.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#gates.close();
    clearInterval(this.#renewTimer);
    // Stops the poll first, because it may still take queues.
    const ended = this.#poller.stop().then(() => Promise.allSettled(this.#running));
    await within(ended, timeoutMs);
    await this.#deps.store.releaseOwn();
  }

  /** Returns the number of calls in memory. */
  queues(): number {
    return this.#queues.size;
  }

  canTake(receiver: Receiver): boolean {
    if (this.#isStopping || !this.#deps.mayDeliver()) return false;
    return this.#gates.hasRoom(receiver);
  }

  /** Returns when the lease of a queue that is created now runs out. */
  leaseUntil(now = this.#deps.now()): Date {
    return new Date(now.getTime() + leaseMs);
  }

  onStored(stored: StoredNotifications): void {
    const { callId, day, owed, isRepeated } = stored;
    const [first] = owed;
    if (first === undefined && !isRepeated) return;
    this.wake();
    const started =
      isRepeated || first === undefined
        ? this.#takeOwn({ callId, day })
        : this.#takeNew(stored, first);
    started.catch((error: unknown) =>
      // The poll finds the call later: its queue has no lease, or its lease runs out.
      this.#deps.logger.warn(
        { err: error, callId },
        'cannot take stored notifications, they are sent later',
      ),
    );
  }

  /** Polls now for notifications that became owed without a lease. */
  lookForDue(): void {
    this.wake();
    this.#poller.soon(true);
  }

  async #takeNew(
    { callId, day, owed, storedAt, leasedUntil, isNewQueue }: StoredNotifications,
    receiver: OwedNotification,
  ): Promise<void> {
    // Without a lease there was no room for the call. The poll takes it when there is.
    if (leasedUntil === undefined) return this.#want(callId, receiver);
    const pending = pendingOf(owed, storedAt);
    if (isNewQueue) {
      const recipient = (await this.#deps.recipients([callId])).get(callId);
      this.#take({ callId, day, leasedUntil: leasedUntil.getTime(), pending }, recipient);
      return;
    }
    const queue = this.#queues.get(callId);
    if (queue === undefined || !extendCallQueue(queue, pending, leasedUntil.getTime())) {
      this.#want(callId, receiver);
    }
  }

  /**
   * Takes a queue that SQL says is leased to this process although this process may not know of it.
   */
  async #takeOwn(call: CallOfDay): Promise<void> {
    const { callId } = call;
    const queue = this.#queues.get(callId);
    if (queue !== undefined) return markStale(queue);
    const leased = await this.#deps.store.loadOne(call);
    if (leased === undefined || this.#queues.has(callId)) return;
    this.#take(leased, (await this.#deps.recipients([callId])).get(callId));
  }

  #now(): number {
    return this.#deps.now().getTime();
  }

  /** Looks for a call at once: a notification was added to a queue that already existed. */
  #want(callId: string, { accountId, origin }: Receiver): void {
    const queue = this.#queues.get(callId);
    if (queue !== undefined) {
      markStale(queue);
    } else if (this.#wanted.size < maxWanted && this.canTake({ accountId, origin })) {
      // If there is no room now, the poll finds the call when there is.
      this.#wanted.set(callId, { accountId, origin });
      this.#poller.soon(false);
    }
  }

  #take(leased: LeasedCallQueue, recipient: Recipient | undefined, isStale = false): void {
    const present = this.#queues.get(leased.callId);
    if (present !== undefined) {
      present.successor = leased;
      return;
    }
    const queue = newCallQueue(leased, recipient);
    queue.isStale = isStale;
    if (leased.isGone === true) markGone(queue, this.#now());
    this.#queues.set(queue.callId, queue);
    this.#gates.hold(queue.receiver.accountId);
    const run = this.#run(queue)
      .catch((error: unknown) => {
        // The queue is dropped. The poll finds the call again when its lease has run out.
        this.#deps.logger.error(
          { err: error, callId: queue.callId },
          'sending the notifications of a call failed',
        );
      })
      .finally(() => {
        this.#running.delete(run);
        this.#queues.delete(queue.callId);
        this.#gates.release(queue.receiver.accountId);
        // This queue may already have sent what its successor holds, so the successor is read
        // again.
        if (queue.successor !== undefined) this.#take(queue.successor, recipient, true);
        else if (queue.isStale) this.#want(queue.callId, queue.receiver);
      });
    this.#running.add(run);
  }

  async #run(queue: CallQueue): Promise<void> {
    while (await this.#advance(queue)) {
      // Repeats until nothing is due or this process no longer holds the queue.
    }
  }

  /**
   * Sends the next notification, or releases the queue.
   *
   * @returns false if this process no longer holds the queue
   */
  async #advance(queue: CallQueue): Promise<boolean> {
    if (queue.isStale && !(await this.#refresh(queue))) return false;
    const step = this.#step(queue);
    if (step.kind !== 'send') return await this.#records.settle(queue, undefined, step);
    const sent = await this.#send(queue, step.notification);
    if (sent === 'no-room') return true;
    if (sent === 'lease-short') {
      await queue.recorded;
      // The lease may have been renewed during the wait. Then this process may still send.
      return queue.leasedUntil - this.#now() >= minLeaseLeftMs;
    }
    if (sent.state === 'delivered' && !queue.isStale && this.#step(queue).kind === 'finish') {
      await this.#records.pauseForMore(queue);
    }
    const next = this.#step(queue);
    if (next.kind !== 'send') return await this.#records.settle(queue, sent, next);
    this.#records.storeSoon(queue, sent);
    return true;
  }

  #step(queue: CallQueue): CallQueueStep {
    const now = this.#now();
    const { heldUntil } = queue;
    if (this.#isStopping && queue.pending.length > 0) {
      return { kind: 'wait', until: Math.max(heldUntil ?? now, now) };
    }
    return nextStep(queue.pending, {
      now,
      passRefusedAfterMs: this.#deps.schedule.passRefusedAfterMs,
      ...(heldUntil === undefined ? {} : { heldUntil }),
    });
  }

  /** @returns `no-room` if nothing was sent; the next step must then be decided again */
  async #send(
    queue: CallQueue,
    notification: PendingNotification,
  ): Promise<AttemptRecord | 'no-room' | 'lease-short'> {
    if (!(await this.#gates.enter(queue.receiver, this.#now()))) {
      if (!this.#isStopping) queue.heldUntil = this.#now() + noRoomDelayMs;
      return 'no-room';
    }
    let failed: boolean | undefined;
    try {
      // Either may have happened while the queue waited for its place.
      if (this.#isStopping || queue.isStale) return 'no-room';
      if (queue.leasedUntil - this.#now() < minLeaseLeftMs) return 'lease-short';
      const delivery = await attemptDelivery(
        this.#deps,
        notification,
        queue.callId,
        queue.recipient,
        this.#deps.mayDeliver,
      );
      if (delivery === undefined) {
        queue.heldUntil = this.#now() + noRoomDelayMs;
        return 'no-room';
      }
      this.#deps.onAttempt?.(delivery, endpointOf(queue));
      failed = receiverFailed(delivery.result);
      recordInCallQueue(queue, notification.eventId, delivery);
      if (delivery.verdict.kind === 'failed')
        this.#deps.logger.warn(delivery.record, 'notification given up');
      return delivery.record;
    } finally {
      const hasRoom = this.#gates.leave(queue.receiver, this.#now(), failed);
      if (hasRoom) this.#poller.soon(true);
    }
  }

  /** @returns false if this process no longer holds the queue */
  async #refresh(queue: CallQueue): Promise<boolean> {
    // Until the attempts are stored, the database still has delivered notifications as pending.
    await queue.recorded;
    const leased = await this.#deps.store.loadOne(queue);
    if (leased === undefined) {
      queue.isStale = false;
      return false;
    }
    refreshCallQueue(queue, leased);
    if (leased.isGone === true) markGone(queue, this.#now());
    return true;
  }

  async #renew(): Promise<void> {
    const queues = [...this.#queues.values()];
    try {
      await renewCallQueues(this.#deps.store, queues, this.leaseUntil());
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'cannot renew the leases of notifications');
    }
  }

  async #claimDue(): Promise<Found | 'nothing owed'> {
    const found = await this.#claim(true);
    if (found !== 'nothing' || this.#queues.size > 0) return found;
    return (await this.#deps.store.owesAnything()) ? 'nothing' : 'nothing owed';
  }

  async #claim(due: boolean): Promise<Found> {
    this.#gates.forgetIdle(this.#now());
    // A call that is claimed now could not be sent.
    if (!this.#deps.mayDeliver()) return 'nothing';
    const wanted = this.#nextWanted();
    const rooms = this.#gates.rooms();
    const limit = due ? Math.min(claimLimit, rooms.unlistedAccounts.room - wanted.length) : 0;
    const claimed = await claimCallQueues(this.#deps, {
      ...{ wanted, limit, rooms },
      until: this.leaseUntil(),
    });
    for (const { leased, recipient } of claimed.queues) this.#take(leased, recipient);
    if (claimed.more) return 'more';
    return this.#wanted.size > 0 ? 'wanted' : 'nothing';
  }

  /** Calls that find no place are dropped here: they are due, so the poll finds them. */
  #nextWanted(): readonly string[] {
    const wanted: string[] = [];
    for (const [callId, receiver] of this.#wanted) {
      if (wanted.length === claimLimit) break;
      this.#wanted.delete(callId);
      if (this.canTake(receiver)) wanted.push(callId);
    }
    return wanted;
  }
}
