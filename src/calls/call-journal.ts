// The facts of one call on their way to the stream: which of them it has not confirmed yet.

import type { CallEvent } from './call-events.ts';
import type { EventPublisher } from './ports.ts';

export class CallJournal {
  readonly #publisher: EventPublisher;
  readonly #unpublished = new Set<CallEvent>();
  readonly #onLost: (error: unknown) => void;

  /** `onLost`: the publisher gave a fact up; it stays in `unpublished()`, to be stored with the call's end. */
  constructor(publisher: EventPublisher, onLost: (error: unknown) => void) {
    this.#publisher = publisher;
    this.#onLost = onLost;
  }

  publish(event: CallEvent): void {
    this.#unpublished.add(event);
    this.#publisher.publish(event).then(
      () => this.#unpublished.delete(event),
      (error: unknown) => this.#onLost(error),
    );
  }

  unpublished(): readonly CallEvent[] {
    return [...this.#unpublished];
  }
}
