// Publishes the stored events of calls, in order. A call is settled when it has ended and no far
// end is left in it. Events that are left at a stop, or that find too many waiting, stay in SQL,
// where `published_event_sequence` says where to continue.

import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { RunningPublisher } from './publisher.ts';

export type RelayPorts = {
  readonly publisher: Pick<RunningPublisher, 'publish' | 'holds'>;
  /** Resolves when nothing of the call is on the wire any more. */
  readonly untilReleased: (callId: CallId) => Promise<void>;
  /** Marks the call as settled, with some delay. */
  readonly settle: (callId: CallId) => void;
  /** Records that the process that takes the call need not publish its first event. */
  readonly markQueuedPublished: (callId: CallId) => void;
  readonly logger: Logger;
};

/**
 * Maximum number of calls in `#through`. Events of a forgotten call are published again and dropped
 * by id.
 */
const mostRemembered = 50_000;

export class EventRelay {
  readonly #ports: RelayPorts;
  /**
   * The sequence of the last event on the stream, for calls that have not ended, including those
   * that wait for a process to take them.
   */
  readonly #through = new Map<CallId, number>();
  /**
   * Calls with events that found no room. Recovery publishes the rest with the call's end, in
   * order.
   */
  readonly #behind = new Set<CallId>();
  /** Calls that have ended and are published, but still have a far end. */
  readonly #releasing = new Set<CallId>();

  constructor(ports: RelayPorts) {
    this.#ports = ports;
  }

  /**
   * Publishes stored events of one call, in order. If `isRecovered`, it leaves them to the
   * recovery, which hangs up: events that a lost process stored may have to be published before
   * them.
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
        this.#ports.logger.warn(
          { err: error, callId },
          'cannot publish events of a call, they stay in the database',
        );
      },
    );
  }

  /**
   * The sequence of the call's last event on the stream. Undefined if this process does not know.
   */
  publishedThrough(callId: CallId): number | undefined {
    return this.#through.get(callId);
  }

  /** Whether some events of the call are on the stream or on their way. */
  knows(callId: CallId): boolean {
    return this.#through.has(callId) || this.#ports.publisher.holds(callId);
  }

  /**
   * Whether events of the call are on their way, or this process knows another reason why the call
   * is not settled.
   */
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
