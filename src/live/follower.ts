// One client that follows live events, with the chunks that it has not taken yet.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { compare, type Position } from './cursor.ts';
import type { EventScope } from './event-log.ts';

/** A piece of the server-sent event stream. It is built once for all followers. */
export type Chunk = {
  readonly text: string;
  /** Undefined if the chunk only carries the follower's position. */
  readonly event?: CallEvent;
};

/** A follower with more than this waiting is too slow, and is disconnected. */
export const maxWaitingBytes = 1_048_576;

/**
 * A comment is sent after this pause: proxies close silent connections, and only a write reveals
 * that a client is dead.
 */
const quietMs = 15_000;

export class Follower {
  readonly #scope: EventScope;
  /** The follower has already read the events up to here on its own. */
  readonly #from: Position;
  readonly #onTooSlow: () => void;
  #waiting: Chunk[] = [];
  #bytes = 0;
  /** The chunk with the position that was last passed to `advance`. */
  #positionChunk: Chunk | undefined;
  #wake: (() => void) | undefined;
  #hasEnded = false;

  constructor(scope: EventScope, from: Position, onTooSlow: () => void) {
    this.#scope = scope;
    this.#from = from;
    this.#onTooSlow = onTooSlow;
  }

  offer(event: CallEvent, position: Position, chunk: Chunk): void {
    if (this.#hasEnded || !isFor(this.#scope, event) || compare(position, this.#from) <= 0) return;
    this.#waiting.push(chunk);
    this.#bytes += chunk.text.length;
    if (this.#bytes > maxWaitingBytes) {
      this.end();
      this.#onTooSlow();
    }
    this.#wake?.();
  }

  /** Notes that the log was read up to this position without an event for this follower. */
  advance(position: Chunk): void {
    if (this.#waiting.length === 0) this.#positionChunk = position;
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
  }

  /**
   * Waits for chunks and returns all of them. If none arrive for a while, it returns a comment and
   * the follower's position.
   *
   * @returns undefined once the follower has ended
   */
  async next(): Promise<readonly Chunk[] | undefined> {
    if (!this.#hasEnded && this.#waiting.length === 0) await this.#untilWoken();
    if (this.#hasEnded) return undefined;
    const chunks = this.#waiting;
    const position = this.#positionChunk;
    this.#waiting = [];
    this.#bytes = 0;
    this.#positionChunk = undefined;
    return chunks.length > 0 ? chunks : [{ text: `:\n${position?.text ?? '\n'}` }];
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
