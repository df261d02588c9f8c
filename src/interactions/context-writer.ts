// Events that carry a context → the bucket that bot flows read. An older context never takes the place of a newer one, whichever
// process writes it: each carries the sequence of its event, and is written in place of the revision that was looked at.

import type { CallEvent } from '../calls/contract/call-event.ts';
import { contextOf } from '../calls/contract/event-table.ts';
import { type ContextStore, contextKey } from './context-store.ts';

/** Calls whose last revision is remembered: an event of a call that is not costs one read more. */
const mostRemembered = 20_000;
/** Two processes write the same call's only while one takes it over from the other. */
const mostTries = 5;

type Written = { readonly eventSequence: number; readonly revision: number };

/** Resolves when the bucket has it, or something newer; at once where the event changes no context. */
export function createContextWriter(
  contexts: Pick<ContextStore, 'replace' | 'revisionOf'>,
): (event: CallEvent) => Promise<void> {
  const remembered = new RememberedRevisions();

  return async (event) => {
    const context = contextOf(event);
    if (context === undefined) return;
    const { eventSequence } = event;
    const key = contextKey(event);
    for (let tries = 1; tries <= mostTries; tries += 1) {
      const known = remembered.of(key);
      if (known.eventSequence >= eventSequence) return;
      const revision = await contexts.replace(key, { ...context, eventSequence }, known.revision);
      if (revision !== undefined) return remembered.set(key, { eventSequence, revision });
      remembered.set(key, await contexts.revisionOf(key));
    }
    throw new Error(`the context of a call changed ${mostTries} times while it was written`);
  };
}

class RememberedRevisions {
  readonly #byKey = new Map<string, Written>();

  of(key: string): Written {
    return this.#byKey.get(key) ?? { eventSequence: 0, revision: 0 };
  }

  set(key: string, written: Written): void {
    this.#byKey.delete(key);
    this.#byKey.set(key, written);
    const [oldest] = this.#byKey.keys();
    if (this.#byKey.size > mostRemembered && oldest !== undefined) this.#byKey.delete(oldest);
  }
}
