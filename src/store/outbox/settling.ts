// Marks ended calls as done with: all that they stated is on the stream, and no far end is left in them. Not urgent, so that calls that
// end within a moment share a statement.

import type { Pool } from 'pg';
import type { CallId } from '../../calls/contract/identity.ts';
import type { Logger } from '../../lib/logger.ts';

const lingerMs = 250;
/** More are left to the look for calls that are not done with. */
const maxWaiting = 50_000;

const settleStatement = `
update calls set published_event_sequence = last_event_sequence, unpublished_events = null,
  end_published_at = clock_timestamp()
where call_id = any($1::text[]) and owner_id = $2 and ended_at is not null and end_published_at is null`;

/** Of calls that wait to be taken: the process that takes one need not publish that it was queued. */
const markStatement = `
update calls set published_event_sequence = 1
where call_id = any($1::text[]) and published_event_sequence is null`;

type Kind = 'settled' | 'queued';

export class Settling {
  readonly #pool: Pool;
  readonly #ownerId: string;
  readonly #isHere: (callId: CallId) => boolean;
  readonly #logger: Logger;
  readonly #waiting = { settled: new Set<CallId>(), queued: new Set<CallId>() };
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  /** `isHere`: its next step will say how far it is published. */
  constructor(pool: Pool, ownerId: string, isHere: (callId: CallId) => boolean, logger: Logger) {
    this.#pool = pool;
    this.#ownerId = ownerId;
    this.#isHere = isHere;
    this.#logger = logger;
  }

  /** Where it fails, the sweep for calls that are not settled finds it again. */
  settle(callId: CallId): void {
    this.#add('settled', callId);
  }

  markQueuedPublished(callId: CallId): void {
    this.#add('queued', callId);
  }

  holds(callId: CallId): boolean {
    return this.#waiting.settled.has(callId);
  }

  /** What waits is stored, or left to the next process. */
  async stop(): Promise<void> {
    await this.#flush();
  }

  #add(kind: Kind, callId: CallId): void {
    if (this.#waiting[kind].size >= maxWaiting) return;
    this.#waiting[kind].add(callId);
    this.#timer ??= setTimeout(() => void this.#flush(), lingerMs);
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#running;
    this.#running = this.#write();
    await this.#running;
  }

  async #write(): Promise<void> {
    const settled = [...this.#waiting.settled];
    const queued = [...this.#waiting.queued];
    try {
      if (settled.length > 0) await this.#pool.query(settleStatement, [settled, this.#ownerId]);
      const elsewhere = queued.filter((callId) => !this.#isHere(callId));
      if (elsewhere.length > 0) await this.#pool.query(markStatement, [elsewhere]);
    } catch (error) {
      this.#logger.warn({ err: error }, 'ended calls are not marked as done with');
    }
    for (const callId of settled) this.#waiting.settled.delete(callId);
    for (const callId of queued) this.#waiting.queued.delete(callId);
  }
}
