// A client that is following live events, and the chunks that it hasn't received yet.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { compare, type Position } from './cursor.ts';
import type { EventScope } from './event-log.ts';

/** A piece of the server-sent event stream, which we build once for all followers. */
export type Chunk = {
  readonly text: string;
  /** Undefined if the chunk only carries the follower's position. */
  readonly event?: CallEvent;
};

/** If more bytes are waiting for a follower, it is too slow and we disconnect it. */
export const maxWaitingBytes = 1_048_576;

/**
 * After this pause we send a comment, because proxies close silent connections, and because we
 * can't tell that a client is dead unless we write to it.
 */
const quietMs = 15_000;

export class Follower {
  readonly #scope: EventScope;
  /** Position up to which the follower has already read events on its own. */
  readonly #from: Position;
  readonly #onTooSlow: () => void;
  #waiting: Chunk[] = [];
  #bytes = 0;
  /** The chunk that was last passed to `advance`. */
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

  /** Records that the log up to this position didn't contain any event for this follower. */
  advance(position: Chunk): void {
    if (this.#waiting.length === 0) this.#positionChunk = position;
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
  }

  /**
   * Waits for chunks and returns all of them. If none arrive for a while, returns a comment and the
   * follower's position.
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
