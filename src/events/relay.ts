// Publishes calls' stored events, in order. A call is settled when all its events are on the stream
// and no far end is left. Events stay in SQL if we can't publish them because of a stop, or because
// too many are waiting. `published_event_sequence` records where to continue.

import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { RunningPublisher } from './publisher.ts';

export type RelayPorts = {
  readonly publisher: Pick<RunningPublisher, 'publish' | 'holds'>;
  /** Resolves when all SIP of the call has ended. */
  readonly untilReleased: (callId: CallId) => Promise<void>;
  /** Marks the call as settled, with a delay. */
  readonly settle: (callId: CallId) => void;
  /**
   * Records that `queued` has been published, so the process that takes the call doesn't have to.
   */
  readonly markQueuedPublished: (callId: CallId) => void;
  readonly logger: Logger;
};

/**
 * Maximum number of calls in `#through`. If we forget a call, its events are published again and
 * consumers drop them by id.
 */
const maxRemembered = 50_000;

export class EventRelay {
  readonly #ports: RelayPorts;
  /**
   * Sequence of the last event on the stream, for calls that haven't ended, including queued calls.
   */
  readonly #through = new Map<CallId, number>();
  /**
   * Calls with events that could not be published. Recovery publishes the rest together with the
   * call's end, in order.
   */
  readonly #behind = new Set<CallId>();
  /** Calls that have ended and are published completely, but still have a far end. */
  readonly #releasing = new Set<CallId>();

  constructor(ports: RelayPorts) {
    this.#ports = ports;
  }

  /**
   * Publishes one call's stored events, in order. If `isRecovered` is set, recovery publishes them
   * instead, because there may be earlier events that the lost process stored.
   */
  send(events: readonly CallEvent[], { isRecovered } = { isRecovered: false }): void {
    const last = events.at(-1);
    if (last === undefined) return;
    const callId = last.callId as CallId;
    if (isRecovered) {
      this.#forget(callId);
      return;
    }
    const hasEnded = isEnd(last);
    const isBehind = this.#behind.has(callId);
    if (hasEnded) this.#behind.delete(callId);
    if (isBehind) return;
    this.#ports.publisher.publish(events).then(
      () => {
        if (hasEnded) this.#finish(callId);
        else this.#reached(callId, last);
      },
      (error: unknown) => {
        this.#through.delete(callId);
        if (!hasEnded) this.#behind.add(callId);
        this.#ports.logger.warn(
          { err: error, callId },
          'cannot publish the events of a call, so they stay in the database',
        );
      },
    );
  }

  /** Returns the sequence of the call's last event on the stream. Undefined if unknown. */
  publishedThrough(callId: CallId): number | undefined {
    return this.#through.get(callId);
  }

  /** Whether this process has published events of the call or is publishing them. */
  knows(callId: CallId): boolean {
    return this.#through.has(callId) || this.#ports.publisher.holds(callId);
  }

  /**
   * Whether this process still has to settle the call, because its events are being published or a
   * far end is left.
   */
  holds(callId: CallId): boolean {
    return this.#ports.publisher.holds(callId) || this.#releasing.has(callId);
  }

  #reached(callId: CallId, { type, eventSequence }: CallEvent): void {
    this.#through.delete(callId);
    this.#through.set(callId, eventSequence);
    if (type === 'queued') this.#ports.markQueuedPublished(callId);
    const [oldest] = this.#through.keys();
    if (this.#through.size > maxRemembered && oldest !== undefined) this.#through.delete(oldest);
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
