// Publishes calls' stored events, in order. We call a call settled once all its events are on the
// stream and all its legs have been disconnected. If we can't publish events because of a stop, or
// because too many are waiting, the events remain in the database, and `published_event_sequence`
// records where to continue.

import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { RunningPublisher } from './publisher.ts';

export type RelayPorts = {
  readonly publisher: Pick<RunningPublisher, 'publish' | 'holds'>;
  /** Resolves once all of the call's SIP dialogs and transactions have ended. */
  readonly untilReleased: (callId: CallId) => Promise<void>;
  /** Marks the call as settled after a delay. */
  readonly settle: (callId: CallId) => void;
  /**
   * Records that `queued` has been published, so the process that claims the call doesn't have to
   * publish it.
   */
  readonly markQueuedPublished: (callId: CallId) => void;
  readonly logger: Logger;
};

/** The numbers of a call's last events. */
type Progress = {
  /** The last event that was passed to the publisher. */
  readonly sent: number;
  /** The last event on the stream. 0 if unknown. */
  readonly through: number;
};

/**
 * Maximum number of calls in `#progress`. If we forget a call, its events are published again, but
 * consumers drop events that they have already seen, by their ids.
 */
const maxRemembered = 50_000;

export class EventRelay {
  readonly #ports: RelayPorts;
  /** The progress of each call that hasn't ended, including queued calls. */
  readonly #progress = new Map<CallId, Progress>();
  /**
   * Calls with events that couldn't be published. Recovery publishes the remaining events in order,
   * followed by the call's end event.
   */
  readonly #behind = new Set<CallId>();
  /** Calls that have ended and are published completely, but still have a connected leg. */
  readonly #releasing = new Set<CallId>();

  constructor(ports: RelayPorts) {
    this.#ports = ports;
  }

  /**
   * Publishes one call's stored events, in order. If `isRecovered` is set, recovery publishes the
   * events instead, because the lost process may have stored earlier events.
   */
  send(events: readonly CallEvent[], { isRecovered } = { isRecovered: false }): void {
    const [first] = events;
    const last = events.at(-1);
    if (first === undefined || last === undefined) return;
    const callId = last.callId as CallId;
    if (isRecovered) {
      this.#forget(callId);
      return;
    }
    const hasEnded = isEnd(last);
    if (this.#behind.has(callId)) {
      if (hasEnded) this.#behind.delete(callId);
      return;
    }
    if (this.#hasGapBefore(callId, first)) {
      this.#fallBehind(last, new Error('the events before them were not passed on'));
      return;
    }
    this.#note(callId, { sent: last.eventSequence, through: 0 });
    this.#ports.publisher.publish(events).then(
      () => {
        if (hasEnded) this.#finish(callId);
        else this.#reached(callId, last);
      },
      (error: unknown) => this.#fallBehind(last, error),
    );
  }

  /** Returns the sequence of the call's last event on the stream. Undefined if unknown. */
  publishedThrough(callId: CallId): number | undefined {
    const through = this.#progress.get(callId)?.through;
    return through === 0 ? undefined : through;
  }

  /** Returns true if this process has published any of the call's events or is doing so now. */
  knows(callId: CallId): boolean {
    return this.#progress.has(callId) || this.#ports.publisher.holds(callId);
  }

  /**
   * Returns true if this process still has to settle the call, because its events are being
   * published or one of its legs is still connected.
   */
  holds(callId: CallId): boolean {
    return this.#ports.publisher.holds(callId) || this.#releasing.has(callId);
  }

  /**
   * Returns true if an event between the last one that was passed to the publisher and this one is
   * missing. Without this check, nobody would notice, because later events would be on the stream.
   */
  #hasGapBefore(callId: CallId, { eventSequence }: CallEvent): boolean {
    const sent = this.#progress.get(callId)?.sent;
    return sent !== undefined && eventSequence > sent + 1;
  }

  /** Leaves these events and those that follow to recovery, which looks at calls that ended. */
  #fallBehind(last: CallEvent, cause: unknown): void {
    const callId = last.callId as CallId;
    this.#progress.delete(callId);
    if (isEnd(last)) this.#behind.delete(callId);
    else this.#behind.add(callId);
    this.#ports.logger.warn(
      { err: cause, callId },
      'cannot publish the events of a call, so they stay in the database',
    );
  }

  #reached(callId: CallId, { type, eventSequence }: CallEvent): void {
    this.#note(callId, { sent: eventSequence, through: eventSequence });
    if (type === 'queued') this.#ports.markQueuedPublished(callId);
  }

  /** An event that is published again does not lower the numbers. */
  #note(callId: CallId, { sent, through }: Progress): void {
    const known = this.#progress.get(callId) ?? { sent: 0, through: 0 };
    this.#progress.delete(callId);
    this.#progress.set(callId, {
      sent: Math.max(known.sent, sent),
      through: Math.max(known.through, through),
    });
    const [oldest] = this.#progress.keys();
    if (this.#progress.size > maxRemembered && oldest !== undefined) this.#progress.delete(oldest);
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
    this.#progress.delete(callId);
    this.#behind.delete(callId);
  }
}
