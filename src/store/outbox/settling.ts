// Marks ended calls as settled: all their events are on the stream, and no far end is left in them.
// This is not urgent, so calls that end close together share a statement.

import type { Pool } from 'pg';
import type { CallId } from '../../calls/contract/identity.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import { fewRows } from '../few-rows.ts';

const lingerMs = 250;
/** The pause after a failure, because the database may be away. */
const retryMs = 1_000;
/** The sweep for unsettled calls finds the calls beyond this number. */
const maxWaiting = 50_000;

const settleStatement = {
  name: 'settle calls',
  text: `
update calls c set published_event_sequence = last_event_sequence,
  end_published_at = clock_timestamp()
from unnest($1::text[]) as given(call_id)
where ${fewRows('given.call_id')} and c.call_id = given.call_id and owner_id = $2 and ended_at is not null
  and end_published_at is null`,
} as const;

/**
 * Marks calls that still wait to be taken. The process that takes such a call need not publish its
 * `queued` event.
 */
const markStatement = {
  name: 'mark queued calls',
  text: `
update calls set published_event_sequence = 1
where call_id = any($1::text[]) and published_event_sequence is null`,
} as const;

/**
 * Deletes the stored legs of calls that have no far end. A process that takes over such a call
 * before it is settled then doesn't hang it up again.
 */
const legsOverStatement = {
  name: 'legs that are over',
  text: 'delete from call_legs where call_id = any($1::text[])',
} as const;

type Kind = 'settled' | 'queued' | 'over';

export class Settling {
  readonly #pool: Pool;
  readonly #ownerId: string;
  readonly #isHere: (callId: CallId) => boolean;
  readonly #logger: Logger;
  readonly #waiting = {
    settled: new Set<CallId>(),
    queued: new Set<CallId>(),
    /** Calls without a far end that are not settled, added in this turn. */
    over: new Set<CallId>(),
  };
  /** The calls of `over` from the previous turn. Their events still wait for NATS or for SQL. */
  #stillOver: readonly CallId[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStopping = false;

  /**
   * `isHere` reports whether this process has the call. If it has, the call's next step stores how
   * far its events are published.
   */
  constructor(pool: Pool, ownerId: string, isHere: (callId: CallId) => boolean, logger: Logger) {
    this.#pool = pool;
    this.#ownerId = ownerId;
    this.#isHere = isHere;
    this.#logger = logger;
  }

  /**
   * Settles a call, and retries until that succeeds. Otherwise the sweep for unsettled calls would
   * hang the call up again.
   */
  settle(callId: CallId): void {
    this.#add('settled', callId);
  }

  /**
   * Notes that no far end is left in the call. This is stored only if the call is not settled soon.
   */
  legsAreOver(callId: CallId): void {
    this.#add('over', callId);
  }

  markQueuedPublished(callId: CallId): void {
    this.#add('queued', callId);
  }

  holds(callId: CallId): boolean {
    return this.#waiting.settled.has(callId);
  }

  /** Stores waiting marks once more. If that fails, they are left to the next process. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#flush();
  }

  #add(kind: Kind, callId: CallId): void {
    if (this.#waiting[kind].size >= maxWaiting) return;
    this.#waiting[kind].add(callId);
    this.#arm();
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#running;
    this.#running = this.#write();
    await this.#running;
    if (this.#stillOver.length > 0) this.#arm();
  }

  #arm(waitMs = lingerMs): void {
    if (this.#isStopping) return;
    const flush = (): void => inBackground(this.#flush(), this.#logger, 'marking calls as settled');
    this.#timer ??= setTimeout(flush, waitMs);
  }

  async #write(): Promise<void> {
    const settled = [...this.#waiting.settled];
    const queued = [...this.#waiting.queued];
    const over = this.#takeOver();
    try {
      if (settled.length > 0) {
        await this.#pool.query({ ...settleStatement, values: [settled, this.#ownerId] });
      }
      if (over.length > 0) await this.#pool.query({ ...legsOverStatement, values: [over] });
      const elsewhere = queued.filter((callId) => !this.#isHere(callId));
      if (elsewhere.length > 0) await this.#pool.query({ ...markStatement, values: [elsewhere] });
    } catch (error) {
      this.#logger.warn({ err: error }, 'ended calls could not be marked as settled');
      this.#stillOver = [...over, ...this.#stillOver].slice(0, maxWaiting);
      this.#arm(retryMs);
      return;
    }
    for (const callId of settled) this.#waiting.settled.delete(callId);
    for (const callId of queued) this.#waiting.queued.delete(callId);
  }

  /**
   * Returns the calls of the previous turn that are still unsettled. The calls of this turn follow
   * in the next.
   */
  #takeOver(): readonly CallId[] {
    const { settled, over } = this.#waiting;
    const isOpen = (callId: CallId): boolean => !settled.has(callId);
    const due = this.#stillOver.filter(isOpen);
    const later = [...over].filter(isOpen);
    over.clear();
    this.#stillOver = this.#isStopping ? [] : later;
    return this.#isStopping ? [...due, ...later] : due;
  }
}
