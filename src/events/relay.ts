// What is stored of a call goes out: published in order, and when it has ended and no far end is left in it, it is done with. What
// is left at a stop, or finds too much waiting, stays in SQL, where `published_event_sequence` says from where to go on.

import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { RunningPublisher } from './publisher.ts';

export type RelayPorts = {
  readonly publisher: Pick<RunningPublisher, 'publish' | 'holds'>;
  /** Nothing of the call is on the wire any more. */
  readonly untilReleased: (callId: CallId) => Promise<void>;
  /** Marks it as done with, in a while. */
  readonly settle: (callId: CallId) => void;
  /** Marks that the process that takes it need not publish its first event. */
  readonly markQueuedPublished: (callId: CallId) => void;
  readonly logger: Logger;
};

/** What is forgotten is published again, and dropped by its id. */
const mostRemembered = 50_000;

export class EventRelay {
  readonly #ports: RelayPorts;
  /** Of calls that have not ended, and of those that wait to be taken by any process: the last event that is on the stream. */
  readonly #through = new Map<CallId, number>();
  /** Some of their events did not find room: the rest goes out with their end, in order. */
  readonly #behind = new Set<CallId>();
  /** Ended, published, and a far end is still in them. */
  readonly #releasing = new Set<CallId>();

  constructor(ports: RelayPorts) {
    this.#ports = ports;
  }

  /**
   * Stored events of one call, in order. `isRecovered`: they are left to recovery, which hangs up, because events that a lost process
   * stored may have to be published before them.
   */
  send(events: readonly CallEvent[], { isRecovered } = { isRecovered: false }): void {
    const last = events.at(-1);
    if (last === undefined) return;
    const callId = last.callId as CallId;
    if (isRecovered) {
      this.#forget(callId);
      return;
    }
    const isOver = isEnd(last);
    const isBehind = this.#behind.has(callId);
    if (isOver) this.#behind.delete(callId);
    if (isBehind) return;
    this.#ports.publisher.publish(events).then(
      () => {
        if (isOver) this.#finish(callId);
        else this.#reached(callId, last);
      },
      (error: unknown) => {
        this.#through.delete(callId);
        if (!isOver) this.#behind.add(callId);
        this.#ports.logger.warn({ err: error, callId }, 'events of a call stay in the database');
      },
    );
  }

  /** Up to where the call's events are on the stream; undefined: nothing is known here. */
  publishedThrough(callId: CallId): number | undefined {
    return this.#through.get(callId);
  }

  /** Some of its events are on the stream, or on their way. */
  knows(callId: CallId): boolean {
    return this.#through.has(callId) || this.#ports.publisher.holds(callId);
  }

  /** Its events are on their way, or it is not done with for another reason that is known here. */
  holds(callId: CallId): boolean {
    return this.#ports.publisher.holds(callId) || this.#releasing.has(callId);
  }

  #reached(callId: CallId, { type, eventSequence }: CallEvent): void {
    this.#through.delete(callId);
    this.#through.set(callId, eventSequence);
    if (type === 'queued') this.#ports.markQueuedPublished(callId);
    const [oldest] = this.#through.keys();
    if (this.#through.size > mostRemembered && oldest !== undefined) this.#through.delete(oldest);
  }

  #finish(callId: CallId): void {
    this.#forget(callId);
    this.#releasing.add(callId);
    const settled = this.#ports.untilReleased(callId).then(() => {
      this.#releasing.delete(callId);
      this.#ports.settle(callId);
    });
    inBackground(settled, this.#ports.logger, 'settling a call');
  }

  #forget(callId: CallId): void {
    this.#through.delete(callId);
    this.#behind.delete(callId);
  }
}
