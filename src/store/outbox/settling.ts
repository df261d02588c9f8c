// Marks ended calls as done with: all that they stated is on the stream, and no far end is left in them. Not urgent, so that calls that
// end within a moment share a statement.

import type { Pool } from 'pg';
import type { CallId } from '../../calls/contract/identity.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import { fewRows } from '../few-rows.ts';

const lingerMs = 250;
/** After a failure: the database may be away. */
const retryMs = 1_000;
/** More are left to the look for calls that are not done with. */
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

/** Of calls that wait to be taken: the process that takes one need not publish that it was queued. */
const markStatement = {
  name: 'mark queued calls',
  text: `
update calls set published_event_sequence = 1
where call_id = any($1::text[]) and published_event_sequence is null`,
} as const;

/** A process that takes a call over before it is done with need not hang it up again. */
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
    /** Off the wire, and not settled: of this turn. */
    over: new Set<CallId>(),
  };
  /** The same of the last turn: their events still wait, for NATS or for SQL. */
  #stillOver: readonly CallId[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStopping = false;

  /** `isHere`: its next step will say how far it is published. */
  constructor(pool: Pool, ownerId: string, isHere: (callId: CallId) => boolean, logger: Logger) {
    this.#pool = pool;
    this.#ownerId = ownerId;
    this.#isHere = isHere;
    this.#logger = logger;
  }

  /** Tried until it is done: the sweep for calls that are not settled would hang it up again. */
  settle(callId: CallId): void {
    this.#add('settled', callId);
  }

  /** No far end is left in it. Stored only where it is not settled soon. */
  legsAreOver(callId: CallId): void {
    this.#add('over', callId);
  }

  markQueuedPublished(callId: CallId): void {
    this.#add('queued', callId);
  }

  holds(callId: CallId): boolean {
    return this.#waiting.settled.has(callId);
  }

  /** What waits is stored, or left to the next process. */
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
    const flush = (): void =>
      inBackground(this.#flush(), this.#logger, 'marking calls as done with');
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
      this.#logger.warn({ err: error }, 'ended calls are not marked as done with');
      this.#stillOver = [...over, ...this.#stillOver].slice(0, maxWaiting);
      this.#arm(retryMs);
      return;
    }
    for (const callId of settled) this.#waiting.settled.delete(callId);
    for (const callId of queued) this.#waiting.queued.delete(callId);
  }

  /** What is still to be stored of the last turn; this turn's are next. */
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
