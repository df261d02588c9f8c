// The facts of one call on their way to the stream: which of them it has not confirmed yet.

import type { CallEvent } from './contract/call-event.ts';
import type { EventPublisher } from './ports.ts';

export class CallJournal {
  readonly #publisher: EventPublisher;
  readonly #unpublished = new Map<CallEvent, 'under way' | 'given up'>();
  readonly #onLost: (error: unknown) => void;

  /**
   * `first`: what was stated of the call before; whether the stream has it shows with the next fact.
   * `onLost`: the publisher gave a fact up; it stays in `unpublished()`, to be stored and published with the call's end.
   */
  constructor(publisher: EventPublisher, first: CallEvent, onLost: (error: unknown) => void) {
    this.#publisher = publisher;
    this.#unpublished.set(first, 'under way');
    this.#onLost = onLost;
  }

  publish(event: CallEvent): void {
    this.#unpublished.set(event, 'under way');
    this.#publisher.publish(event).then(
      () => this.#confirm(event),
      (error: unknown) => {
        this.#unpublished.set(event, 'given up');
        this.#onLost(error);
      },
    );
  }

  /** The publisher keeps the order: the stream has what was under way before as well. */
  #confirm(event: CallEvent): void {
    for (const [earlier, state] of this.#unpublished) {
      if (state === 'under way' || earlier === event) this.#unpublished.delete(earlier);
      if (earlier === event) return;
    }
  }

  unpublished(): readonly CallEvent[] {
    return [...this.#unpublished.keys()];
  }

  givenUp(): readonly CallEvent[] {
    return this.unpublished().filter((event) => this.#unpublished.get(event) === 'given up');
  }
}

/** The publisher keeps the order of one call's facts; all of them must be stored before its end counts as published. */
export async function publishInOrder(
  publisher: EventPublisher,
  events: readonly CallEvent[],
): Promise<void> {
  await Promise.all(events.map((event) => publisher.publish(event)));
}
