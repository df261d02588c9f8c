// Sends stored events to followers, i.e. clients that receive events over HTTP as they happen. A
// follower has two phases:
//
// catching up: we read separate pages for the follower, as fast as the client can receive them,
// until the follower reaches the shared reader's position.
//
// live: one shared reader reads the events and passes them to all of this process's live followers.
// Events wait in memory until the client has received them, up to a bound. We disconnect clients
// that are too slow, but they can reconnect with their cursor.
//
// The shared reader reads whenever an event has been published, and once a second in case that
// signal gets lost. It is stopped while there are no live followers.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { compare, type Position, readCursor, writeCursor } from './cursor.ts';
import type { EventLog, EventScope, LoggedEvent, LogPage } from './event-log.ts';
import { type Chunk, Follower } from './follower.ts';

export type LiveOptions = {
  readonly log: EventLog;
  readonly logger: Logger;
  /** The event retention. Older cursors are rejected. */
  readonly retentionMs: number;
  /**
   * Calls `wake` whenever any process has published an event. We start this for the first live
   * follower and stop it when the last follower leaves. By default, only the sweep finds events.
   */
  readonly watch?: (wake: () => void) => { stop(): void };
  readonly now?: () => Date;
  readonly sweepEveryMs?: number;
};

export type Following = {
  readonly signal: AbortSignal;
  /** Called if too much data is waiting for the follower. We discard this data. */
  readonly onTooSlow: () => void;
};

/** We pause at least this long between reads, so that one read gets a whole burst of events. */
const minRestMs = 40;
/**
 * The minimum pause while events keep arriving. This longer pause reduces the CPU usage for ten
 * screens from 8% of a core to 3%.
 */
const busyRestMs = 150;
const readsUntilBusy = 5;
const defaultSweepEveryMs = 1_000;
/** After this many bytes of a page, followers get a turn. A page may contain several megabytes. */
const maxTurnBytes = 65_536;

export class LiveEvents {
  readonly #log: EventLog;
  readonly #logger: Logger;
  readonly #options: LiveOptions;
  readonly #followers = new Set<Follower>();
  /** The shared reader's position. Undefined if there are no live followers. */
  #position: Position | undefined;
  #watch: { stop(): void } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #isReading = false;
  #readAt = 0;
  /** Counts consecutive reads that found events soon after the previous read. */
  #busyReads = 0;
  #heldUpRounds = 0;
  #isStopped = false;

  constructor(options: LiveOptions) {
    this.#log = options.log;
    this.#logger = options.logger;
    this.#options = options;
  }

  /**
   * Yields events until the signal aborts, the follower is too slow, or the gateway stops. Without
   * a cursor, starts with the next event, or with the call's first event if the scope is a call.
   *
   * @throws if the database is unreachable while the follower catches up
   */
  async *follow(
    scope: EventScope,
    cursor: string | undefined,
    following: Following,
  ): AsyncGenerator<readonly Chunk[]> {
    const begin = await this.#begin(scope, cursor);
    yield [begin.chunk];
    let { position } = begin;
    while (!following.signal.aborted && !this.#isStopped) {
      const page = await this.#log.read(position, scope);
      position = page.end;
      if (page.events.length > 0) yield this.#chunksOf(page);
      if (page.isFull) continue;
      // Don't await between this check and adding the follower in `#live`. Otherwise this follower
      // could miss an event that the shared reader passes on in the meantime.
      if (this.#position !== undefined && compare(position, this.#position) < 0) continue;
      yield* this.#live(scope, position, following);
      return;
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#rest();
    for (const follower of this.#followers) follower.end();
  }

  async *#live(
    scope: EventScope,
    position: Position,
    { signal, onTooSlow }: Following,
  ): AsyncGenerator<readonly Chunk[]> {
    const follower = new Follower(scope, position, onTooSlow);
    this.#followers.add(follower);
    this.#position ??= position;
    this.#watch ??= this.#options.watch?.(() => this.#schedule(0));
    const end = (): void => follower.end();
    signal.addEventListener('abort', end, { once: true });
    this.#schedule(0);
    try {
      for (;;) {
        const chunks = await follower.next();
        if (chunks === undefined) return;
        yield chunks;
      }
    } finally {
      signal.removeEventListener('abort', end);
      this.#followers.delete(follower);
      if (this.#followers.size === 0) this.#rest();
    }
  }

  async #begin(
    scope: EventScope,
    text: string | undefined,
  ): Promise<{ readonly position: Position; readonly chunk: Chunk }> {
    const cursor = text === undefined ? undefined : readCursor(text);
    const oldest = this.#now().getTime() - this.#options.retentionMs;
    const isKnown =
      cursor !== undefined &&
      cursor.at.getTime() >= oldest &&
      (await this.#log.knows(cursor.position, scope));
    if (isKnown)
      return { position: cursor.position, chunk: positionChunk(cursor.position, cursor.at) };
    const position = scope.callId === undefined ? await this.#log.end(scope) : beginningOfCall;
    if (text === undefined) return { position, chunk: positionChunk(position, this.#now()) };
    const reason = cursor === undefined ? 'the cursor is not valid' : 'the cursor is too old';
    const data = JSON.stringify({ reason });
    return {
      position,
      chunk: {
        text: `${idLine(writeCursor({ position, at: this.#now() }))}event: reset\ndata: ${data}\n\n`,
      },
    };
  }

  #rest(): void {
    this.#watch?.stop();
    this.#watch = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#position = undefined;
  }

  #schedule(inMs: number): void {
    if (this.#isStopped || this.#isReading) {
      this.#dueAt = Math.min(this.#dueAt, performance.now() + inMs);
      return;
    }
    const at = Math.max(performance.now() + inMs, this.#readAt + this.#minRestMs);
    if (this.#timer !== undefined && this.#dueAt <= at) return;
    clearTimeout(this.#timer);
    this.#dueAt = at;
    const read = (): void => inBackground(this.#read(), this.#logger, 'reading events');
    this.#timer = setTimeout(read, at - performance.now());
  }

  async #read(): Promise<void> {
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
    const position = this.#position;
    if (position === undefined) return;
    this.#isReading = true;
    const sinceLastMs = performance.now() - this.#readAt;
    this.#readAt += sinceLastMs;
    let restMs = this.#options.sweepEveryMs ?? defaultSweepEveryMs;
    try {
      const page = await this.#log.read(position);
      // If all followers left during the read, the position has changed. A new follower may even
      // have set a different one.
      if (this.#position === position) {
        this.#position = page.end;
        const isBusy = page.events.length > 0 && sinceLastMs < 2 * busyRestMs && !page.isFull;
        this.#busyReads = isBusy ? this.#busyReads + 1 : 0;
        await this.#deliver(page);
        restMs = this.#restAfter(page, restMs);
      }
    } catch (error) {
      this.#logger.warn({ err: error }, 'cannot read events for followers');
    }
    this.#isReading = false;
    if (this.#followers.size === 0) return;
    this.#schedule(Math.max(0, Math.min(restMs, this.#dueAt - performance.now())));
  }

  get #minRestMs(): number {
    return this.#busyReads < readsUntilBusy ? minRestMs : busyRestMs;
  }

  /**
   * Returns the pause before the next read. While a transaction is holding up the log, the pause
   * starts at 20 ms, because our own transactions last only a few milliseconds, and doubles up to
   * the sweep interval.
   */
  #restAfter({ isFull, isHeldUp }: LogPage, sweepEveryMs: number): number {
    this.#heldUpRounds = isHeldUp ? this.#heldUpRounds + 1 : 0;
    if (isFull) return 0;
    return isHeldUp ? Math.min(sweepEveryMs, 2 ** this.#heldUpRounds * 10) : sweepEveryMs;
  }

  async #deliver(page: LogPage): Promise<void> {
    if (page.events.length === 0) {
      const end = positionChunk(page.end, this.#now());
      for (const follower of this.#followers) follower.advance(end);
      return;
    }
    let bytes = 0;
    for (const [index, chunk] of this.#chunksOf(page).entries()) {
      const { event, position } = page.events[index] as LoggedEvent;
      for (const follower of this.#followers) follower.offer(event, position, chunk);
      bytes += chunk.text.length;
      if (bytes < maxTurnBytes) continue;
      // Let followers send their chunks before more chunks arrive.
      bytes = 0;
      await nextTurn();
    }
  }

  #chunksOf(page: LogPage): readonly Chunk[] {
    return page.events.map(({ position, event }) => {
      const cursor = writeCursor({ position, at: new Date(event.time) });
      const text = `${idLine(cursor)}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
      return { text, event };
    });
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date();
  }
}

const beginningOfCall: Position = { transactionId: '0', callId: '', eventSequence: 0 };

function idLine(cursor: string): string {
  return `id: ${cursor}\n`;
}

/**
 * Returns a chunk with an id but no data. Browsers store the id for reconnecting but don't dispatch
 * an event (HTML, section 9.2.6).
 */
function positionChunk(position: Position, at: Date): Chunk {
  return { text: `${idLine(writeCursor({ position, at }))}\n` };
}
