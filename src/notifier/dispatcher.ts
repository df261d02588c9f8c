// Delivers what is owed. Leases whole calls from the database, sends each call's notifications in order and one at a
// time, many calls at once. Notifications that were just accepted arrive with their lease and go out without a look into
// the database; everything else (retries, what another process left) is found by the poll.
//
// A restart loses nothing: a lease that is not renewed runs out, and those of this node's former process are given back
// at the start.

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

/** Three renewals fit into it; longer would delay what a process that was killed owes. */
const leaseMs = 30_000;
const renewEveryMs = 10_000;
/** Less than this of the lease left: nothing is sent any more, because it could outlast the lease. */
const minLeaseLeftMs = 12_000;
const defaultPollMs = 1_000;
const claimLimit = 200;
/** Some polls' worth; more are found by the poll that looks for what is due. */
const maxWanted = 2_000;
/** A call that found no place at its receiver, or that this process may not send for just now, looks again after this. */
const noRoomDelayMs = 2_000;

export type DispatcherDeps = DeliveryDeps & {
  readonly store: NotificationStore;
  readonly recipients: RecipientLookup;
  /**
   * False: others may have taken over what this process holds, whatever the leases of its calls say; a process that was
   * stopped finds them as long as it left them.
   */
  readonly mayDeliver: () => boolean;
  readonly logger: Logger;
  /** Told of each attempt. No endpoint: the call is gone. */
  readonly onAttempt?: (delivery: Delivery, endpoint: Endpoint | undefined) => void;
};

export type DispatcherOptions = {
  readonly pollMs?: number;
  /** While no notification is owed there is no poll for so long. Left out, and where others share the database: there always is. */
  readonly longestRestMs?: number;
  readonly gates?: GateLimits;
};

// The notifications of one call go through:
//
// owed      In the database only, without a lease. Left when the poll finds them due, or when they come with their lease.
// wanted    Owed, and known here: something was added to the call. Left with the next poll, which does not wait for its time.
// leased    A queue is in memory, the lease is renewed. What comes next is decided; where the database may know more, the queue
//           is read again first. Left for `sending` when a notification is due, for `let go` when none is.
// sending   It waits for its place at the receiver, then one attempt is made. Left for `leased` with its result; without a
//           place, or without the right to send, too, where the queue is held back for two seconds.
// empty     The last one was delivered. It waits for the pause after which attempts are stored. Left for `leased` when something
//           is added, else for `let go`.
// let go    The lease is given back, with the time at which the next one is due: `owed` again, or nothing is. Where something
//           was added meanwhile the database keeps the lease, and it is `leased` again. A lease that is nearly over is let run out.
//
// `stop` sends nothing more: each queue ends its attempt and is let go.

/** Notifications of one call that were just stored. */
export type StoredNotifications = CallOfDay & {
  /** Pending, in order. */
  readonly owed: readonly OwedNotification[];
  readonly storedAt: Date;
  /** The call's queue is leased to this process. */
  readonly leasedUntil?: Date;
  /** It was made for them. */
  readonly isNewQueue: boolean;
  /** The answer of the statement before was lost: what it stored is not in `owed`. */
  readonly isRepeated: boolean;
};

export class NotificationDispatcher {
  readonly #deps: DispatcherDeps;
  readonly #poller: Poller;
  readonly #gates: OriginGates;
  readonly #records: AttemptRecords;
  readonly #queues = new Map<string, CallQueue>();
  readonly #running = new Set<Promise<void>>();
  /** Calls to look for at once: accepted, but into a queue that was not made for it. */
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

  /** What lost processes were about to send may be taken by any process again. */
  async takeOver(): Promise<void> {
    const released = await this.#deps.store.releaseLost();
    if (released === 0) return;
    this.#deps.logger.info({ calls: released }, 'took over notifications of a lost process');
    this.wake();
  }

  /** Something is owed that was not stored by this process's calls. */
  wake(): void {
    this.#poller.wake();
  }

  /** Ends what is being sent, at most this long; what is owed stays owed, for the next process. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#gates.close();
    clearInterval(this.#renewTimer);
    // The poll first: it may still take queues.
    const ended = this.#poller.stop().then(() => Promise.allSettled(this.#running));
    await within(ended, timeoutMs);
    await this.#deps.store.releaseOwn();
  }

  /** Calls in memory. */
  queues(): number {
    return this.#queues.size;
  }

  canTake(receiver: Receiver): boolean {
    if (this.#isStopping || !this.#deps.mayDeliver()) return false;
    return this.#gates.hasRoom(receiver);
  }

  /** Of a queue that is made at this moment. */
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
      // The lease of its queue runs out, or was never there: it is found by the poll.
      this.#deps.logger.warn({ err: error, callId }, 'notifications are sent later'),
    );
  }

  /** Something is owed that came without a lease: looked for now. */
  lookForDue(): void {
    this.wake();
    this.#poller.soon(true);
  }

  async #takeNew(
    { callId, day, owed, storedAt, leasedUntil, isNewQueue }: StoredNotifications,
    receiver: OwedNotification,
  ): Promise<void> {
    // Without a lease there was no room: the poll takes it when there is.
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

  /** A queue that SQL says is leased to this process, which may not know of it. */
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

  /** Looks for a call at once: something was added to a queue that was not made for it. */
  #want(callId: string, { accountId, origin }: Receiver): void {
    const queue = this.#queues.get(callId);
    if (queue !== undefined) {
      markStale(queue);
    } else if (this.#wanted.size < maxWanted && this.canTake({ accountId, origin })) {
      // Where there is no room, it is found by the poll when there is.
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
        // The queue goes with its lease, and comes back when that has run out.
        this.#deps.logger.error({ err: error, callId: queue.callId }, 'notifications interrupted');
      })
      .finally(() => {
        this.#running.delete(run);
        this.#queues.delete(queue.callId);
        this.#gates.release(queue.receiver.accountId);
        // What is in a successor may have been sent by the queue before it: it is read again.
        if (queue.successor !== undefined) this.#take(queue.successor, recipient, true);
        else if (queue.isStale) this.#want(queue.callId, queue.receiver);
      });
    this.#running.add(run);
  }

  async #run(queue: CallQueue): Promise<void> {
    while (await this.#advance(queue)) {
      // One step after the other, until nothing is due or the queue is no longer ours.
    }
  }

  /** Sends what is next, or lets the queue go. False: it is out of our hands. */
  async #advance(queue: CallQueue): Promise<boolean> {
    if (queue.isStale && !(await this.#refresh(queue))) return false;
    const step = this.#step(queue);
    if (step.kind !== 'send') return await this.#records.settle(queue, undefined, step);
    const sent = await this.#send(queue, step.notification);
    if (sent === 'no-room') return true;
    if (sent === 'lease-short') {
      await queue.recorded;
      // It may have been renewed while that was waited for: then it is ours to send.
      return queue.leasedUntil - this.#now() >= minLeaseLeftMs;
    }
    if (sent.state === 'delivered' && !queue.isStale && this.#step(queue).kind === 'finish') {
      await this.#records.pauseForMore(queue);
    }
    const next = this.#step(queue);
    if (next.kind !== 'send') return await this.#records.settle(queue, sent, next);
    this.#records.soon(queue, sent);
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

  /** `no-room`: nothing was sent; look again at what is to be done. */
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
      // Both may have come about while it waited for its place.
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

  /** False: the queue is no longer ours. */
  async #refresh(queue: CallQueue): Promise<boolean> {
    // What was delivered is still pending there until then.
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
      this.#deps.logger.warn({ err: error }, 'leases of notifications not renewed');
    }
  }

  async #claimDue(): Promise<Found | 'nothing owed'> {
    const found = await this.#claim(true);
    if (found !== 'nothing' || this.#queues.size > 0) return found;
    return (await this.#deps.store.owesAnything()) ? 'nothing' : 'nothing owed';
  }

  async #claim(due: boolean): Promise<Found> {
    this.#gates.forgetIdle(this.#now());
    // What is claimed now could not be sent.
    if (!this.#deps.mayDeliver()) return 'nothing';
    const wanted = this.#nextWanted();
    const rooms = this.#gates.rooms();
    const limit = due ? Math.min(claimLimit, rooms.ofOthers.room - wanted.length) : 0;
    const claimed = await claimCallQueues(this.#deps, {
      ...{ wanted, limit, rooms },
      until: this.leaseUntil(),
    });
    for (const { leased, recipient } of claimed.queues) this.#take(leased, recipient);
    if (claimed.more) return 'more';
    return this.#wanted.size > 0 ? 'wanted' : 'nothing';
  }

  /** Those that find no place are due all the same. */
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
