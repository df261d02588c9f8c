// A follower of live events, with the chunks that it has not taken yet.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { compare, type Position } from './cursor.ts';
import type { EventScope } from './event-log.ts';

/** The text that is sent, built once for all connections. */
export type Chunk = {
  readonly text: string;
  /** Undefined if the chunk only carries the follower's position. */
  readonly event?: CallEvent;
};

/** A follower with this much waiting does not read. It is disconnected. */
export const mostBehindBytes = 1_048_576;

/**
 * The pause after which a comment is sent. Proxies close silent connections, and a dead client is
 * noticed only by writing to it.
 */
const quietMs = 15_000;

export class Follower {
  readonly #scope: EventScope;
  /** The follower itself has read the events up to here. */
  readonly #from: Position;
  readonly #onTooSlow: () => void;
  #waiting: Chunk[] = [];
  #bytes = 0;
  #place: Chunk | undefined;
  #wake: (() => void) | undefined;
  #isOver = false;

  constructor(scope: EventScope, from: Position, onTooSlow: () => void) {
    this.#scope = scope;
    this.#from = from;
    this.#onTooSlow = onTooSlow;
  }

  offer(event: CallEvent, position: Position, chunk: Chunk): void {
    if (this.#isOver || !isFor(this.#scope, event) || compare(position, this.#from) <= 0) return;
    this.#waiting.push(chunk);
    this.#bytes += chunk.text.length;
    if (this.#bytes > mostBehindBytes) {
      this.end();
      this.#onTooSlow();
    }
    this.#wake?.();
  }

  /** Notes that the log was read up to here and had no event for this follower. */
  reach(place: Chunk): void {
    if (this.#waiting.length === 0) this.#place = place;
  }

  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  /**
   * Waits until chunks are there, and returns all of them. After a pause it returns a comment with
   * the follower's position.
   *
   * @returns undefined once the follower has ended
   */
  async next(): Promise<readonly Chunk[] | undefined> {
    if (!this.#isOver && this.#waiting.length === 0) await this.#untilWoken();
    if (this.#isOver) return undefined;
    const chunks = this.#waiting;
    const place = this.#place;
    this.#waiting = [];
    this.#bytes = 0;
    this.#place = undefined;
    return chunks.length > 0 ? chunks : [{ text: `:\n${place?.text ?? '\n'}` }];
  }

  #untilWoken(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), quietMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}

function isFor({ accountId, botIds, callId }: EventScope, event: CallEvent): boolean {
  return (
    event.accountId === accountId &&
    (botIds === 'all' || botIds.includes(event.botId)) &&
    (callId === undefined || event.callId === callId)
  );
}
