// One who follows live events: what is for it and not taken yet.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { compare, type Position } from './cursor.ts';
import type { EventScope } from './event-log.ts';

/** As it goes out; made once for all connections. */
export type Chunk = {
  readonly text: string;
  /** Undefined where it only says where the follower stands. */
  readonly event?: CallEvent;
};

/** A follower that is behind by so much does not read: it is told so by being cut off. */
export const mostBehindBytes = 1_048_576;

/** Proxies close what says nothing; and a client that died without a word is found by it. */
const quietMs = 15_000;

export class Follower {
  readonly #scope: EventScope;
  /** What comes before was read by the follower itself. */
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

  /** Nothing of what was read up to there is for it. */
  reach(place: Chunk): void {
    if (this.#waiting.length === 0) this.#place = place;
  }

  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  /** All that waits, once something does; after a quiet while a comment, with the place where it stands. Undefined: it is over. */
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
