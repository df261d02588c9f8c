// Delivers notifications. Each call has a queue of notifications in the database. The dispatcher
// leases whole queues and serves many of them concurrently, but sends each call's notifications in
// order, one at a time. When this process stores notifications, it gets a lease at the same time,
// so we can send them without reading the database. A poll finds everything else, i.e. retries, and
// notifications left by other processes.
//
// We don't lose anything in a restart, because leases run out unless they are renewed. A process
// also releases lost processes' leases when it starts.

import { onEveryBeat } from '../lib/beat.ts';
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

/** Long enough for three renewals. After a process has been killed, its leases last this long. */
const leaseMs = 30_000;
const renewEveryMs = 10_000;
/** How much of the lease must be left when an attempt starts, so that the attempt ends in time. */
const minLeaseLeftMs = 12_000;
const defaultPollMs = 1_000;
const claimLimit = 200;
/** That's enough for several polls. The poll for due calls finds any further calls. */
const maxWanted = 2_000;
/**
 * Delay before we try again after a call couldn't get a place at its receiver, or after
 * `mayDeliver` returned false.
 */
const noRoomDelayMs = 2_000;

export type DispatcherDeps = DeliveryDeps & {
  readonly store: NotificationStore;
  readonly recipients: RecipientLookup;
  /**
   * Returns false if other processes may have taken over this process's queues. `leasedUntil` can't
   * show that, because other processes may release a lost node's leases early.
   */
  readonly mayDeliver: () => boolean;
  readonly logger: Logger;
  /** Called after each attempt. `endpoint` is undefined if the call has been deleted. */
  readonly onAttempt?: (delivery: Delivery, endpoint: Endpoint | undefined) => void;
};

export type DispatcherOptions = {
  readonly pollMs?: number;
  /**
   * Pause between polls while no notification is pending. Default: `pollMs`. Don't set it if other
   * processes share the database, because they don't wake this poll.
   */
  readonly maxRestMs?: number;
  readonly gates?: GateLimits;
};

// States of a call's notification queue:
//
// owed      The queue exists only in the database and isn't leased. Next: `leased`, when the poll
//           finds that the queue is due, or when a notification is stored with a lease.
// wanted    Like `owed`, but this process knows that a notification has been added, so it polls for
//           the call immediately. Next: `leased`.
// leased    The queue is in memory, and we keep renewing its lease. If the database may contain
//           more notifications, we read the queue again first. Next: `sending` if a notification is
//           due, else `released`.
// sending   A notification is waiting for a place at the receiver, or an attempt is in progress.
//           Next: `leased`, with the result. If there is no place, or this process isn't allowed to
//           send, the next state is also `leased`, but the queue then waits for two seconds.
// empty     The last notification has been delivered. The queue is waiting for the current pause to
//           end and for its attempts to be stored. Next: `leased` if a notification is added, else
//           `released`.
// released  The lease has been given up, and the row contains the time of the next attempt. Next:
//           `owed`, or the end if nothing is pending. If a notification was added in the meantime,
//           the database keeps the lease and the queue becomes `leased` again. If the lease has
//           almost run out, we just let it expire.
//
// After `stop`, no more attempts start, and each queue is released after its current attempt.

/** Notifications that were just stored for one call. */
export type StoredNotifications = CallOfDay & {
  /** Pending notifications, in order. */
  readonly owed: readonly OwedNotification[];
  readonly storedAt: Date;
  /** Expiry of the queue's lease. Undefined if the queue isn't leased to this process. */
  readonly leasedUntil?: Date;
  /** True if the statement that stored the notifications also created the queue. */
  readonly isNewQueue: boolean;
  /**
   * True if we never received the response to an earlier statement. In that case, `owed` doesn't
   * contain the notifications that the earlier statement stored.
   */
  readonly isRepeated: boolean;
};

export class NotificationDispatcher {
  readonly #deps: DispatcherDeps;
  /** Whether the poll pauses longer while nothing is owed. */
  readonly #rests: boolean;
  readonly #poller: Poller;
  readonly #gates: OriginGates;
  readonly #records: AttemptRecords;
  readonly #queues = new Map<string, CallQueue>();
  readonly #running = new Set<Promise<void>>();
  /**
   * We poll for these calls immediately, because a notification has been added to their existing
   * queue.
   */
  readonly #wanted = new Map<string, Receiver>();
  #stopRenewing: (() => void) | undefined;
  #isStopping = false;

  constructor(deps: DispatcherDeps, options: DispatcherOptions = {}) {
    this.#deps = deps;
    this.#rests = (options.maxRestMs ?? 0) > 0;
    this.#poller = new Poller({
      everyMs: options.pollMs ?? defaultPollMs,
      maxRestMs: options.maxRestMs ?? 0,
      logger: deps.logger,
      poll: (due) => (due ? this.#claimDue() : this.#claim(false)),
    });
    this.#gates = new OriginGates(options.gates ?? defaultGateLimits);
    this.#records = new AttemptRecords(deps);
  }

  async start(): Promise<void> {
    await this.takeOver();
    const renew = (): void =>
      inBackground(this.#renew(), this.#deps.logger, 'renewing leases of notifications');
    this.#stopRenewing = onEveryBeat(renewEveryMs, renew);
    this.#poller.soon(true);
  }

  /** Releases lost processes' queues, so any process can lease them. */
  async takeOver(): Promise<void> {
    const released = await this.#deps.store.releaseLost();
    if (released === 0) return;
    this.#deps.logger.info({ calls: released }, 'took over notifications from a lost process');
    this.wake();
  }

  /** Ends the long pause between polls. Call this when a notification may have become due. */
  wake(): void {
    this.#poller.wake();
  }

  /**
   * Waits at most `timeoutMs` for the current attempts, then releases all queues. Other processes
   * will find the pending notifications in the database.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#gates.close();
    this.#stopRenewing?.();
    // Stop the poll first, because it may still be leasing queues.
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

  /** Returns the expiry of a lease that starts now. */
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
      // The poll will find the call later, once the queue's lease has run out at the latest.
      this.#deps.logger.warn(
        { err: error, callId },
        'cannot take stored notifications, so they will be sent later',
      ),
    );
  }

  /** Polls immediately. Call this after storing notifications without a lease. */
  pollForDue(): void {
    this.wake();
    this.#poller.soon(true);
  }

  async #takeNew(
    { callId, day, owed, storedAt, leasedUntil, isNewQueue }: StoredNotifications,
    receiver: OwedNotification,
  ): Promise<void> {
    // Without a lease, we had no room for the call. A poll will lease its queue later.
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

  /** Loads a queue if the database says that this process has leased it. */
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

  /** Makes this process read a call's queue after a notification has been added to the queue. */
  #want(callId: string, { accountId, origin }: Receiver): void {
    const queue = this.#queues.get(callId);
    if (queue !== undefined) {
      markStale(queue);
    } else if (this.#wanted.size < maxWanted && this.canTake({ accountId, origin })) {
      // Otherwise there is no room at the moment, and the poll will find the call later.
      this.#wanted.set(callId, { accountId, origin });
      this.#poller.soon(false);
    }
  }

  #take(leased: LeasedCallQueue, recipient: Recipient | undefined, isStale = false): void {
    const existing = this.#queues.get(leased.callId);
    if (existing !== undefined) {
      existing.successor = leased;
      return;
    }
    const queue = newCallQueue(leased, recipient);
    queue.isStale = isStale;
    if (leased.isGone === true) markGone(queue, this.#now());
    this.#queues.set(queue.callId, queue);
    this.#gates.hold(queue.receiver.accountId);
    const run = this.#run(queue)
      .catch((error: unknown) => {
        // Drop the queue. The poll will find the call again once the lease has run out.
        this.#deps.logger.error(
          { err: error, callId: queue.callId },
          'cannot send the notifications of a call',
        );
      })
      .finally(() => {
        this.#running.delete(run);
        this.#queues.delete(queue.callId);
        this.#gates.release(queue.receiver.accountId);
        // We may already have sent some of the successor's notifications from this queue, so we
        // must read the successor again.
        if (queue.successor !== undefined) this.#take(queue.successor, recipient, true);
        else if (queue.isStale) this.#want(queue.callId, queue.receiver);
      });
    this.#running.add(run);
  }

  async #run(queue: CallQueue): Promise<void> {
    while (await this.#advance(queue)) {
      // Repeats until the queue is released or lost.
    }
  }

  /**
   * Sends the next notification, or releases the queue.
   *
   * @returns false if this process has lost the queue
   */
  async #advance(queue: CallQueue): Promise<boolean> {
    if (queue.isStale && !(await this.#refresh(queue))) return false;
    const step = this.#step(queue);
    if (step.kind !== 'send') return await this.#records.settle(queue, undefined, step);
    const sent = await this.#send(queue, step.notification);
    if (sent === 'no-room') return true;
    if (sent === 'lease-short') {
      await queue.recorded;
      // If the lease was renewed while we waited, this process may still send.
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

  /** @returns `no-room` if nothing was sent, so the next step must be decided again */
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
      // Check again, because the queue may have been waiting for its place for a while.
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

  /** @returns false if this process has lost the queue */
  async #refresh(queue: CallQueue): Promise<boolean> {
    // In the database, a delivered notification remains pending until its attempt has been stored.
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
    if (!this.#rests || found !== 'nothing' || this.#queues.size > 0) return found;
    return (await this.#deps.store.owesAnything()) ? 'nothing' : 'nothing owed';
  }

  async #claim(due: boolean): Promise<Found> {
    this.#gates.forgetIdle(this.#now());
    // It would be pointless to claim a call now, because this process can't send anything.
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

  /** Returns wanted calls that have room. The poll for due calls will find all the others. */
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
